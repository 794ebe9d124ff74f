//! The pods whose containers ended with an earlier agent, until their status reports it.

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;

use super::status::Phase;

/// The UIDs of the pods of an earlier agent that the API still shows as running.
#[derive(Debug)]
pub(crate) struct EarlierPods(watch::Sender<BTreeSet<String>>);

impl Default for EarlierPods {
    fn default() -> Self {
        Self(watch::Sender::new(BTreeSet::new()))
    }
}

impl EarlierPods {
    /// Adds a pod that existed when the agent started, if its status has running containers.
    pub(crate) fn add(&self, pod: &Pod) {
        if let Some(uid) = &pod.metadata.uid
            && !Phase::of(pod).is_terminal()
            && is_shown_as_running(pod)
        {
            self.0.send_modify(|pods| {
                pods.insert(uid.clone());
            });
        }
    }

    /// Removes a pod, because its status has been written or it no longer exists.
    pub(crate) fn remove(&self, uid: &str) {
        self.0.send_if_modified(|pods| pods.remove(uid));
    }

    /// Waits until no pod is left. Returns the number of pods that are left after the timeout.
    pub(crate) async fn removed(&self, timeout: Duration) -> usize {
        let mut pods = self.0.subscribe();
        let removed = pods.wait_for(BTreeSet::is_empty);
        match tokio::time::timeout(timeout, removed).await {
            Ok(_) => 0,
            Err(_) => self.0.borrow().len(),
        }
    }
}

fn is_shown_as_running(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let containers = status.into_iter().flat_map(|status| {
        let own = status.container_statuses.iter();
        own.chain(&status.init_container_statuses).flatten()
    });
    containers
        .filter_map(|container| container.state.as_ref())
        .any(|state| state.running.is_some())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn pods_with_running_containers_are_awaited() {
        let pod = |uid: &str, phase: &str, state: &str| -> Pod {
            let state = json!([{"name": "c", "image": "", "imageID": "", "ready": true,
                "restartCount": 0, "state": {state: {}}}]);
            let status = json!({"phase": phase, "containerStatuses": state});
            serde_json::from_value(json!({"metadata": {"uid": uid}, "status": status})).unwrap()
        };
        let pods = EarlierPods::default();
        pods.add(&pod("over", "Failed", "running"));
        pods.add(&pod("waiting", "Pending", "waiting"));
        assert_eq!(pods.removed(Duration::ZERO).await, 0);
        pods.add(&pod("running", "Running", "running"));
        assert_eq!(pods.removed(Duration::ZERO).await, 1);
        pods.remove("another");
        pods.remove("running");
        assert_eq!(pods.removed(Duration::ZERO).await, 0);
    }
}
