//! The logs of a deleted pod, by its name.

use futures::future::BoxFuture;
use jiff::Timestamp;
use longshore_client::{Cluster, Error, LogOptions};
use longshore_diagnosis::evidence::RunPod as _;

use super::kept::{self, KeptLogs};

/// A deleted pod whose logs the cluster keeps, or has kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedPod {
    /// The name of the pod.
    pub name: String,
    /// The UID of the pod.
    pub uid: String,
    /// The time when the pod was deleted.
    pub deleted: Option<Timestamp>,
    /// The containers that have logs, in the order in which they started.
    pub containers: Vec<String>,
    /// The reason why the cluster has removed the logs.
    pub removed: Option<String>,
    /// The container that runs the command, if the pod is a task.
    main: Option<String>,
}

impl DeletedPod {
    fn of(logs: &KeptLogs) -> Self {
        let pod = logs.pod();
        let main = pod.task().map(|_| pod.main_name().to_owned());
        let metadata = pod.metadata;
        let containers = logs.container_names();
        Self {
            main: main.filter(|main| containers.contains(main)),
            name: metadata.name,
            uid: metadata.uid,
            deleted: logs.deleted,
            containers,
            removed: logs.removed.clone(),
        }
    }

    /// Returns the container whose log is read by default: the only container, or the one that runs
    /// the command of a task.
    #[must_use]
    pub fn default_container(&self) -> Option<&str> {
        match &self.containers[..] {
            [only] => Some(only),
            _ => self.main.as_deref(),
        }
    }

    /// Returns options that select the log of a container.
    #[must_use]
    pub fn options(&self, container: &str) -> LogOptions {
        LogOptions {
            container: Some(container.to_owned()),
            uid: Some(self.uid.clone()),
            ..LogOptions::default()
        }
    }
}

/// Finds the newest deleted pod with a name whose logs the cluster keeps. `None` if there is no
/// such pod, or the cluster keeps no logs of deleted pods.
///
/// # Errors
/// The cluster does not answer, or returns an internal error.
pub fn of_deleted_pod<'a>(
    cluster: &'a Cluster,
    namespace: &'a str,
    name: &'a str,
) -> BoxFuture<'a, Result<Option<DeletedPod>, Error>> {
    // Boxed, so that this crate compiles the future, not each crate that awaits it.
    Box::pin(async move {
        let kept = kept::of_namespace(cluster, namespace, None).await?;
        let deleted = kept.unwrap_or_default().into_iter().filter(|logs| {
            let is_deleted = logs.deleted.is_some();
            is_deleted && logs.pod().metadata.name == name
        });
        let newest = deleted.max_by_key(|logs| logs.deleted);
        Ok(newest.as_ref().map(DeletedPod::of))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn deleted(labels: Value, containers: &[&str]) -> DeletedPod {
        let container = |name: &&str| json!({"name": name, "instances": [{"restart": 0}]});
        let logs = json!({
            "metadata": {"name": "web", "uid": "u", "labels": labels},
            "deleted": "2026-01-01T00:00:00Z",
            "containers": containers.iter().map(container).collect::<Vec<_>>(),
        });
        DeletedPod::of(&serde_json::from_value::<KeptLogs>(logs).unwrap())
    }

    #[test]
    fn the_log_of_the_command_or_of_the_only_container_is_read() {
        let task = json!({"longshore.dev/run": "digits-x7k2p", "longshore.dev/role": "worker",
            "batch.kubernetes.io/job-completion-index": "0"});
        let cases: [(&Value, &[&str], Option<&str>); 5] = [
            (&json!({}), &["web"], Some("web")),
            (&json!({}), &["main", "proxy"], None),
            (&task, &["fetch", "main", "proxy"], Some("main")),
            (&task, &["fetch"], Some("fetch")),
            (&json!({}), &[], None),
        ];
        for (labels, containers, expected) in cases {
            let pod = deleted(labels.clone(), containers);
            assert_eq!(pod.default_container(), expected, "{pod:?}");
        }
    }
}
