//! The cgroups of a pod and of its containers.

use std::sync::Arc;

use super::Worker;
use crate::{
    cgroups::{Cgroups, Group, Limits, Unavailable},
    events::Note,
    pod::Shared,
    pod_threads,
};

/// The error message of container runtimes.
pub(super) const TOO_LITTLE_MEMORY: &str = "container init was OOM-killed (memory limit too low?)";

impl Worker {
    /// Creates the pod's cgroup, if it requests or limits CPU or memory.
    pub(super) async fn create_cgroup(&mut self) {
        let resources = self.resources();
        if self.cgroup.is_some() || resources.is_best_effort() {
            return;
        }
        let limits = Limits::of_pod(&resources);
        let containers = || resources.all_containers();
        let is_limited = limits.is_limiting()
            || containers()
                .any(|container| Limits::of_container(&resources, &container.name).is_limiting());
        let (cgroups, uid) = (self.shared.cgroups.clone(), self.uid.clone());
        // The kernel may need some time.
        let created = pod_threads::run(move || cgroups.for_pod(&uid, &resources)).await;
        match created {
            Ok(Ok(group)) => {
                self.cgroup = group;
                self.pod_limits = limits;
            }
            Ok(Err(error)) if is_limited => self.limits_unavailable(&error),
            Ok(Err(error)) => tracing::debug!(pod = self.name, %error, "a pod has no cgroup"),
            Err(error) => tracing::warn!(pod = self.name, %error, "a pod has no cgroup"),
        }
    }

    /// Creates the cgroup for the next run of a container. An error prevents its start.
    pub(super) async fn container_cgroup(
        &self,
        name: &str,
    ) -> Result<Option<Arc<Group>>, &'static str> {
        let Some(pod) = self.cgroup.clone() else {
            return Ok(None);
        };
        let limits = Limits::of_container(&self.resources(), name);
        let name = name.to_owned();
        let create = move || Cgroups::for_container(&pod, &name, &limits);
        match pod_threads::run(create).await {
            Ok(Ok(group)) => Ok(Some(group)),
            Ok(Err(error)) if error.is_out_of_memory => Err(TOO_LITTLE_MEMORY),
            Ok(Err(error)) => {
                self.limits_unavailable(&error);
                Ok(None)
            }
            Err(error) => {
                tracing::warn!(pod = self.name, %error, "a container has no cgroup");
                Ok(None)
            }
        }
    }

    /// Reports a started process that is not in its cgroup.
    pub(super) fn check_cgroup(&self, group: Option<&Arc<Group>>, process: i32) {
        if let Some(group) = group
            && !group.contains(process)
        {
            self.limits_unavailable(&Unavailable::not_joined());
        }
    }

    fn limits_unavailable(&self, error: &Unavailable) {
        report_unavailable(&self.shared, error);
    }
}

/// Reports that limits are not enforced: once in the log, and for each pod in an event of the Node,
/// which the launcher shows with the pod's run.
fn report_unavailable(shared: &Shared, error: &Unavailable) {
    let message = format!(
        "limits of CPU and memory are not enforced: {}",
        error.with_remedy()
    );
    if shared.cgroups.report(error) {
        tracing::warn!("{message}");
    }
    let note = Note {
        warning: true,
        reason: "LimitsNotEnforced",
        message,
        container: None,
    };
    shared.events.note_node(note);
}
