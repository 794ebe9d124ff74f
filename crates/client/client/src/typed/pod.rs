//! Pods.

use std::net::IpAddr;

use jiff::Timestamp;

use super::{Container, PodPhase};
use crate::{cluster::Connection, error::Result, item::Item, kinds::Pod};

/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use longshore_client::Patch;
/// # use serde_json::json;
/// # let pods = cluster.pods().in_namespace("default")?;
/// # let containers = json!([{"name": "main", "image": "busybox"}]);
/// # let init = json!([{"name": "prepare", "image": "busybox"}]);
/// # let spec = json!({"containers": containers, "initContainers": init});
/// # let web = json!({"metadata": {"name": "web"}, "spec": spec});
/// # pods.create(&web).await?;
/// let pod = pods.fetch("web").await?;
/// assert_eq!((pod.phase()?.as_str(), pod.node()?), ("Pending", None));
/// // A value that is not known yet is an error, never a default.
/// assert_eq!(pod.ip().unwrap_err().to_string(), "Pod web has no status.podIP");
/// assert!(pod.containers()?.is_empty());
/// # cluster.nodes().create(&json!({"metadata": {"name": "n1"}})).await?;
/// # pods.bind("web", "n1").await?;
/// # let ran = json!({"exitCode": 0, "reason": "Completed"});
/// # let runs = json!({"startedAt": "2026-01-05T10:00:01Z"});
/// # let container = |name, state| json!({
/// #     "name": name, "image": "busybox", "imageID": "", "ready": true, "restartCount": 0,
/// #     "state": state,
/// # });
/// # let status = json!({"status": {
/// #     "phase": "Running",
/// #     "podIP": "10.1.0.5", "podIPs": [{"ip": "10.1.0.5"}],
/// #     "hostIP": "10.0.0.7", "hostIPs": [{"ip": "10.0.0.7"}],
/// #     "startTime": "2026-01-05T10:00:00Z",
/// #     "initContainerStatuses": [container("prepare", json!({"terminated": ran}))],
/// #     "containerStatuses": [container("main", json!({"running": runs}))],
/// # }});
/// # pods.patch_status("web", &Patch::merge(status)).await?;
///
/// // After its node has accepted it:
/// let pod = pod.fetch().await?;
/// assert_eq!(pod.node()?.as_deref(), Some("n1"));
/// assert_eq!(pod.ip()?.to_string(), "10.1.0.5");
/// assert_eq!(pod.host_ip()?.to_string(), "10.0.0.7");
/// assert_eq!(pod.start_time()?.to_string(), "2026-01-05T10:00:00Z");
/// assert_eq!(pod.init_containers()?[0].state()?.exit_code()?, 0);
/// assert!(pod.containers()?[0].state()?.running());
/// # let status = json!({"phase": "Failed", "reason": "Evicted", "message": "memory is low"});
/// # pods.patch_status("web", &Patch::merge(json!({"status": status}))).await?;
///
/// // The node has evicted it:
/// let pod = pod.fetch().await?;
/// assert!(pod.phase()?.is_final());
/// assert_eq!((pod.reason()?.as_str(), pod.message()?.as_str()), ("Evicted", "memory is low"));
/// # Ok(()) });
/// ```
impl<C: Connection> Item<Pod, C> {
    /// The phase.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) if it is absent.
    pub fn phase(&self) -> Result<PodPhase> {
        self.status_field(&["phase"])
    }

    /// The pod's primary IP address.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) if it has none yet.
    pub fn ip(&self) -> Result<IpAddr> {
        self.address("podIP")
    }

    /// The primary IP address of the pod's node.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) if it has none yet.
    pub fn host_ip(&self) -> Result<IpAddr> {
        self.address("hostIP")
    }

    fn address(&self, field: &str) -> Result<IpAddr> {
        let text: String = self.status_field(&[field])?;
        if text.is_empty() {
            return Err(self.lacks(&format!("status.{field}")));
        }
        text.parse().map_err(|error| {
            crate::Error::decode(format!("status.{field} of {}", self.described()), error)
        })
    }

    /// Returns a human-readable message about the pod's phase.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) if it is absent.
    pub fn message(&self) -> Result<String> {
        self.status_field(&["message"])
    }

    /// Returns the reason for the pod's phase, in CamelCase.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) if it is absent.
    pub fn reason(&self) -> Result<String> {
        self.status_field(&["reason"])
    }

    /// Returns the time at which the node accepted the pod.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) if no node has accepted it yet.
    pub fn start_time(&self) -> Result<Timestamp> {
        self.status_field(&["startTime"])
    }

    /// The node that the pod is bound to; `None` if it is not scheduled.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) if it is not a string.
    pub fn node(&self) -> Result<Option<String>> {
        let name: Option<String> = self.field(&["spec", "nodeName"])?;
        Ok(name.filter(|name| !name.is_empty()))
    }

    /// The statuses of its containers, in the order of the API; empty until the node
    /// reports them.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) if the status is malformed.
    pub fn containers(&self) -> Result<Vec<Container<C>>> {
        self.container_statuses("containerStatuses")
    }

    /// Like [`Item::containers`], but for the init containers.
    ///
    /// # Errors
    /// The same as [`Item::containers`].
    pub fn init_containers(&self) -> Result<Vec<Container<C>>> {
        self.container_statuses("initContainerStatuses")
    }

    fn container_statuses(&self, field: &str) -> Result<Vec<Container<C>>> {
        let raw: Vec<serde_json::Value> = self.field(&["status", field])?.unwrap_or_default();
        Ok(raw
            .into_iter()
            .map(|raw| Container::new(self.clone(), raw))
            .collect())
    }
}
