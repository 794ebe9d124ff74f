//! Pods that run the tasks of a run.

use jiff::Timestamp;
use longshore_model::facts::{Condition, ContainerStatus, PodFacts, Terminated};

use crate::names::{self, Task};

/// Information in a pod about the task that it runs.
pub trait RunPod {
    /// A condition that is true.
    #[must_use]
    fn condition(&self, kind: &str) -> Option<&Condition>;

    /// The statuses of all containers, init containers first.
    fn statuses(&self) -> impl Iterator<Item = &ContainerStatus>;

    /// The task of the run.
    ///
    /// Servers before Kubernetes 1.21 ignore that a Job is indexed. The pods of such a Job have no
    /// index. All of them count as task 0, so that no pod is ignored.
    #[must_use]
    fn task(&self) -> Option<Task>;

    /// The name of the container that runs the command.
    #[must_use]
    fn main_name(&self) -> &str;

    /// The status of the container that runs the command.
    #[must_use]
    fn main(&self) -> Option<&ContainerStatus>;

    /// The end of the command, if it has ended and its container is not restarted in place.
    #[must_use]
    fn ended(&self) -> Option<&Terminated>;

    /// Returns true if the pod has ended.
    #[must_use]
    fn has_finished(&self) -> bool;

    /// Returns true if the command has ended, and another container keeps the pod from ending: a
    /// proxy that does not end, for example. Sidecars do not count, because they end with the other
    /// containers.
    #[must_use]
    fn lingers(&self) -> bool;

    /// Returns true if the command ended before the deletion of the pod was requested, so that the
    /// deletion did not cause its exit code.
    #[must_use]
    fn ended_by_itself(&self) -> bool;

    /// Returns true if the pod has succeeded, or will succeed when its lingering containers are
    /// ended. A container that fails alongside a command that succeeds makes the pod fail.
    #[must_use]
    fn ends_well(&self) -> bool;

    /// Returns true if the command is running or has run, so that there is a log.
    #[must_use]
    fn has_started(&self) -> bool;

    /// Returns true if no container of the pod is running any more.
    #[must_use]
    fn is_over(&self) -> bool;

    /// Returns true if the command succeeded.
    #[must_use]
    fn has_succeeded(&self) -> bool;

    /// Returns true if the command or an init container has failed.
    #[must_use]
    fn has_failed(&self) -> bool;

    /// The init container that failed. Sidecars do not count.
    #[must_use]
    fn failed_init(&self) -> Option<(&str, &Terminated)>;

    /// Returns true if the init container of this name is a sidecar: it runs alongside the command,
    /// and is restarted when it ends.
    #[must_use]
    fn is_sidecar(&self, name: &str) -> bool;

    /// The time when the command, or the init container that failed, ended.
    #[must_use]
    fn finished_at(&self) -> Option<Timestamp>;

    /// The number of earlier failures of the task that its Job has counted.
    #[must_use]
    fn failures_before(&self) -> u32;

    /// The number of earlier pods of the task that its Job has counted, including pods whose
    /// failure does not count.
    #[must_use]
    fn counted_before(&self) -> u32;

    /// The number of earlier attempts of the task, each with its own pod.
    #[must_use]
    fn attempts_before(&self) -> u32;
}

/// A number in an annotation or label, which any client can write.
fn number(text: Option<&String>) -> u32 {
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

impl RunPod for PodFacts {
    fn condition(&self, kind: &str) -> Option<&Condition> {
        let mut conditions = self.status.conditions.iter();
        conditions.find(|condition| condition.is_true(kind))
    }

    fn statuses(&self) -> impl Iterator<Item = &ContainerStatus> {
        let init = self.status.init_container_statuses.iter();
        init.chain(&self.status.container_statuses)
    }

    fn task(&self) -> Option<Task> {
        let meta = &self.metadata;
        let index = match self.completion_index_text() {
            Some(index) => index.parse().ok()?,
            None => meta.controller_name("Job").map(|_| 0)?,
        };
        let role = meta.labels.get(names::ROLE)?.clone();
        Some(Task { role, index })
    }

    fn main_name(&self) -> &str {
        let named = self.metadata.annotations.get(names::CONTAINER);
        named.map_or(names::MAIN, String::as_str)
    }

    fn main(&self) -> Option<&ContainerStatus> {
        self.status
            .container_statuses
            .iter()
            .find(|status| status.name == self.main_name())
    }

    fn ended(&self) -> Option<&Terminated> {
        let ended = self.main()?.state.terminated.as_ref()?;
        let mut containers = self.spec.containers.iter();
        let own = containers.find(|container| container.name == self.main_name());
        let own = own.map_or("", |container| container.restart_policy.as_str());
        let policy = if own.is_empty() {
            self.spec.restart_policy.as_str()
        } else {
            own
        };
        let restarts = match policy {
            "Always" => true,
            "OnFailure" => ended.exit_code != 0,
            _ => false,
        };
        (!restarts || self.has_finished()).then_some(ended)
    }

    fn has_finished(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    fn lingers(&self) -> bool {
        let others = self.status.container_statuses.iter();
        let mut others = others.filter(|status| status.name != self.main_name());
        self.ended().is_some()
            && !self.has_finished()
            && others.any(|status| status.state.terminated.is_none())
    }

    fn ended_by_itself(&self) -> bool {
        let Some(ended) = self.ended() else {
            return false;
        };
        let meta = &self.metadata;
        let Some(deadline) = meta.deletion_timestamp else {
            return true;
        };
        // The deletion timestamp is the time of the request plus the grace period, in whole
        // seconds.
        let grace = meta.deletion_grace_period_seconds.unwrap_or(0).max(0);
        let requested = deadline.as_second().saturating_sub(grace);
        ended
            .finished_at
            .is_some_and(|at| at.as_second() <= requested)
    }

    fn ends_well(&self) -> bool {
        let others = self.status.container_statuses.iter();
        let mut ended = others.filter_map(|status| status.state.terminated.as_ref());
        match self.status.phase.as_str() {
            "Succeeded" => true,
            "Failed" => false,
            _ => {
                self.has_succeeded()
                    && self.metadata.deletion_timestamp.is_none()
                    && (self.lingers() || ended.all(|ended| ended.exit_code == 0))
            }
        }
    }

    fn has_started(&self) -> bool {
        self.main()
            .is_some_and(|main| main.state.running.is_some() || main.state.terminated.is_some())
    }

    fn is_over(&self) -> bool {
        self.ended().is_some() || self.has_finished()
    }

    fn has_succeeded(&self) -> bool {
        match self.ended() {
            Some(ended) => ended.exit_code == 0,
            None => self.status.phase == "Succeeded",
        }
    }

    fn has_failed(&self) -> bool {
        self.is_over() && !self.has_succeeded()
    }

    fn failed_init(&self) -> Option<(&str, &Terminated)> {
        // Sidecars are ended with the pod, or restarted.
        let inits = self.status.init_container_statuses.iter();
        inits
            .filter(|status| !self.is_sidecar(&status.name))
            .find_map(|status| {
                let ended = status.state.terminated.as_ref()?;
                (ended.exit_code != 0).then_some((status.name.as_str(), ended))
            })
    }

    fn is_sidecar(&self, name: &str) -> bool {
        let mut inits = self.spec.init_containers.iter();
        inits.any(|init| init.name == name && init.restart_policy == "Always")
    }

    fn failures_before(&self) -> u32 {
        number(self.metadata.annotations.get(names::FAILURES))
    }

    fn counted_before(&self) -> u32 {
        let disrupted = number(self.metadata.annotations.get(names::DISRUPTIONS));
        self.failures_before().saturating_add(disrupted)
    }

    fn attempts_before(&self) -> u32 {
        let restarts = number(self.metadata.labels.get(names::SET_RESTARTS));
        self.counted_before().saturating_add(restarts)
    }

    fn finished_at(&self) -> Option<Timestamp> {
        let ended = self
            .ended()
            .or_else(|| self.failed_init().map(|(_, ended)| ended));
        ended.and_then(|ended| ended.finished_at)
    }
}
