//! Containers of pods, from the pods' status.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    cluster::{Cluster, Connection},
    error::{Error, Result},
    item::Item,
    kinds::Pod,
};

/// The status of a container of a pod.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use longshore_client::Patch;
/// # use serde_json::json;
/// # let pods = cluster.pods().in_namespace("default")?;
/// # let containers = json!([{"name": "main", "image": "busybox"}]);
/// # let web = json!({"metadata": {"name": "web"}, "spec": {"containers": containers}});
/// # pods.create(&web).await?;
/// # let status = json!({"status": {"containerStatuses": [{
/// #     "name": "main", "image": "busybox:1.36", "imageID": "sha256:1f",
/// #     "containerID": "cri://7a", "ready": true, "restartCount": 1,
/// #     "state": {"running": {"startedAt": "2026-01-05T10:00:00Z"}},
/// #     "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
/// # }]}});
/// # pods.patch_status("web", &Patch::merge(status)).await?;
/// let containers = pods.fetch("web").await?.containers()?;
/// let main = containers.first().ok_or("its node has said nothing")?;
/// assert_eq!((main.name()?.as_str(), main.pod().name()), ("main", "web"));
/// assert_eq!((main.image()?.as_str(), main.image_id()?.as_str()), ("busybox:1.36", "sha256:1f"));
/// assert_eq!(main.id()?, "cri://7a");
/// assert!(main.ready()? && main.state()?.running());
///
/// // The container has failed before.
/// assert_eq!(main.restart_count()?, 1);
/// assert_eq!(main.last_state()?.exit_code()?, 1);
///
/// // Fields without a method:
/// assert!(main.raw().get("volumeMounts").is_none());
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
pub struct Container<C: Connection = Cluster> {
    pod: Item<Pod, C>,
    raw: Value,
}

impl<C: Connection> Container<C> {
    pub(super) fn new(pod: Item<Pod, C>, raw: Value) -> Self {
        Self { pod, raw }
    }

    /// The pod of the container.
    #[must_use]
    pub fn pod(&self) -> &Item<Pod, C> {
        &self.pod
    }

    /// The whole status as JSON.
    #[must_use]
    pub fn raw(&self) -> &Value {
        &self.raw
    }

    fn get<T: DeserializeOwned>(&self, field: &'static str) -> Result<T> {
        read(&self.pod, &self.raw, "container", field)
    }

    /// The container's name.
    ///
    /// # Errors
    /// [`Error::Status`] if it is absent, as for all methods below.
    pub fn name(&self) -> Result<String> {
        self.get("name")
    }

    /// The container's ID in the runtime.
    ///
    /// # Errors
    /// [`Error::Status`] if it is absent.
    pub fn id(&self) -> Result<String> {
        self.get("containerID")
    }

    /// The image.
    ///
    /// # Errors
    /// [`Error::Status`] if it is absent.
    pub fn image(&self) -> Result<String> {
        self.get("image")
    }

    /// The image's ID.
    ///
    /// # Errors
    /// [`Error::Status`] if it is absent.
    pub fn image_id(&self) -> Result<String> {
        self.get("imageID")
    }

    /// Returns true if the container is ready.
    ///
    /// # Errors
    /// [`Error::Status`] if it is absent.
    pub fn ready(&self) -> Result<bool> {
        self.get("ready")
    }

    /// Returns the number of restarts of the container.
    ///
    /// # Errors
    /// [`Error::Status`] if it is absent.
    pub fn restart_count(&self) -> Result<u64> {
        self.get("restartCount")
    }

    /// The current state.
    ///
    /// # Errors
    /// [`Error::Status`] if it is absent.
    pub fn state(&self) -> Result<ContainerState<C>> {
        self.get("state").map(|raw| ContainerState {
            pod: self.pod.clone(),
            raw,
        })
    }

    /// The state before the last restart.
    ///
    /// # Errors
    /// [`Error::Status`] if it was not restarted.
    pub fn last_state(&self) -> Result<ContainerState<C>> {
        let raw: Value = self.get("lastState")?;
        if raw.as_object().is_none_or(serde_json::Map::is_empty) {
            return Err(self.pod.lacks("container lastState"));
        }
        Ok(ContainerState {
            pod: self.pod.clone(),
            raw,
        })
    }
}

/// A state of a container: waiting, running or terminated.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use longshore_client::Patch;
/// # use serde_json::json;
/// # let pods = cluster.pods().in_namespace("default")?;
/// # let containers = json!([{"name": "main", "image": "busybox"}]);
/// # let web = json!({"metadata": {"name": "web"}, "spec": {"containers": containers}});
/// # pods.create(&web).await?;
/// # let ended = json!({
/// #     "exitCode": 137, "signal": 9, "reason": "OOMKilled", "message": "out of memory",
/// #     "startedAt": "2026-01-05T10:00:00Z", "finishedAt": "2026-01-05T10:02:30Z",
/// #     "containerID": "cri://7a",
/// # });
/// # let status = json!({"status": {"containerStatuses": [{
/// #     "name": "main", "image": "busybox", "imageID": "", "ready": false, "restartCount": 0,
/// #     "state": {"terminated": ended},
/// # }]}});
/// # pods.patch_status("web", &Patch::merge(status)).await?;
/// let state = pods.fetch("web").await?.containers()?[0].state()?;
/// if state.waiting() {
///     println!("waits: {}", state.reason()?);
/// } else if state.running() {
///     println!("runs since {}", state.started_at()?);
/// }
/// assert!(state.terminated());
/// assert_eq!((state.state(), state.exit_code()?, state.signal()?), ("terminated", 137, 9));
/// assert_eq!(state.reason()?, "OOMKilled");
/// assert_eq!(state.message()?, "out of memory");
/// assert_eq!((state.finished_at()? - state.started_at()?).get_seconds(), 150);
/// assert_eq!(state.container_id()?, "cri://7a");
/// assert_eq!(state.raw()["terminated"]["exitCode"], 137);
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
pub struct ContainerState<C: Connection = Cluster> {
    pod: Item<Pod, C>,
    raw: Value,
}

const WAITING: &str = "waiting";
const RUNNING: &str = "running";
const TERMINATED: &str = "terminated";

impl<C: Connection> ContainerState<C> {
    /// The whole state as JSON.
    #[must_use]
    pub fn raw(&self) -> &Value {
        &self.raw
    }

    /// `waiting`, `running` or `terminated`. As in the API, an empty state is `waiting`.
    #[must_use]
    pub fn state(&self) -> &'static str {
        [TERMINATED, RUNNING]
            .into_iter()
            .find(|state| self.raw.get(state).is_some_and(Value::is_object))
            .unwrap_or(WAITING)
    }

    /// Returns true if the container has not started.
    #[must_use]
    pub fn waiting(&self) -> bool {
        self.state() == WAITING
    }

    /// Returns true if the container is running.
    #[must_use]
    pub fn running(&self) -> bool {
        self.state() == RUNNING
    }

    /// Returns true if the container has terminated.
    #[must_use]
    pub fn terminated(&self) -> bool {
        self.state() == TERMINATED
    }

    fn get<T: DeserializeOwned>(&self, states: &[&str], field: &'static str) -> Result<T> {
        let state = self.state();
        if !states.contains(&state) {
            return Err(self.pod.lacks(&format!("container {field} while {state}")));
        }
        read(&self.pod, &self.raw[state], "container state", field)
    }

    /// Returns the reason why the container is waiting or has terminated, in CamelCase.
    ///
    /// # Errors
    /// [`Error::Status`] if it is absent, as for all methods below.
    pub fn reason(&self) -> Result<String> {
        self.get(&[WAITING, TERMINATED], "reason")
    }

    /// Returns a human-readable message about why the container is waiting or has terminated.
    ///
    /// # Errors
    /// [`Error::Status`] if it is absent.
    pub fn message(&self) -> Result<String> {
        self.get(&[WAITING, TERMINATED], "message")
    }

    /// Returns the time at which the container started.
    ///
    /// # Errors
    /// [`Error::Status`] while it is waiting.
    pub fn started_at(&self) -> Result<Timestamp> {
        self.get(&[RUNNING, TERMINATED], "startedAt")
    }

    /// The exit code.
    ///
    /// # Errors
    /// [`Error::Status`] if it has not terminated.
    pub fn exit_code(&self) -> Result<i32> {
        self.get(&[TERMINATED], "exitCode")
    }

    /// The signal that terminated it.
    ///
    /// # Errors
    /// [`Error::Status`] if none did.
    pub fn signal(&self) -> Result<i32> {
        self.get(&[TERMINATED], "signal")
    }

    /// Returns the time at which the container terminated.
    ///
    /// # Errors
    /// [`Error::Status`] if it has not terminated.
    pub fn finished_at(&self) -> Result<Timestamp> {
        self.get(&[TERMINATED], "finishedAt")
    }

    /// The ID of the terminated container in the runtime.
    ///
    /// # Errors
    /// [`Error::Status`] if it has not terminated.
    pub fn container_id(&self) -> Result<String> {
        self.get(&[TERMINATED], "containerID")
    }
}

fn read<T: DeserializeOwned, C: Connection>(
    pod: &Item<Pod, C>,
    raw: &Value,
    what: &str,
    field: &'static str,
) -> Result<T> {
    match raw.get(field) {
        None | Some(Value::Null) => Err(pod.lacks(&format!("{what} {field}"))),
        Some(value) => T::deserialize(value).map_err(|error| {
            Error::decode(format!("{what} {field} of {}", pod.described()), error)
        }),
    }
}
