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
/// // What has not come yet is an error that says so, never a made-up value.
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
/// // Once its node has begun with it:
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
/// // The node has thrown it out:
/// let pod = pod.fetch().await?;
/// assert!(pod.phase()?.is_final());
/// assert_eq!((pod.reason()?.as_str(), pod.message()?.as_str()), ("Evicted", "memory is low"));
/// # Ok(()) });
/// ```
impl<C: Connection> Item<Pod, C> {
    /// How far it has come.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) when it is absent.
    pub fn phase(&self) -> Result<PodPhase> {
        self.status_field(&["phase"])
    }

    /// Its address in the cluster.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) while it has none.
    pub fn ip(&self) -> Result<IpAddr> {
        self.address("podIP")
    }

    /// The address of its node.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) while it has none.
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

    /// Why it is in its phase, for people.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) when it is absent.
    pub fn message(&self) -> Result<String> {
        self.status_field(&["message"])
    }

    /// Why it is in its phase, in a word.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) when it is absent.
    pub fn reason(&self) -> Result<String> {
        self.status_field(&["reason"])
    }

    /// When its node took it on.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) while no node has.
    pub fn start_time(&self) -> Result<Timestamp> {
        self.status_field(&["startTime"])
    }

    /// The node it is on; `None` while it has none.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when it is no text.
    pub fn node(&self) -> Result<Option<String>> {
        let name: Option<String> = self.field(&["spec", "nodeName"])?;
        Ok(name.filter(|name| !name.is_empty()))
    }

    /// What became of its containers, in the order of the status; empty while
    /// its node has said nothing.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when the status is malformed.
    pub fn containers(&self) -> Result<Vec<Container<C>>> {
        self.container_statuses("containerStatuses")
    }

    /// As [`Item::containers`], of the init containers.
    ///
    /// # Errors
    /// As [`Item::containers`].
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
