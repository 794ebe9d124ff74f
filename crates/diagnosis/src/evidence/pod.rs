//! Pods that run the tasks of a run.

use jiff::Timestamp;
use longshore_model::facts::{Condition, ContainerStatus, PodFacts, Terminated};

use crate::names::{self, Task};

/// What a pod says about the task that it runs.
pub trait RunPod {
    /// A condition that is true.
    #[must_use]
    fn condition(&self, kind: &str) -> Option<&Condition>;

    /// The statuses of all containers, init containers first.
    fn statuses(&self) -> impl Iterator<Item = &ContainerStatus>;

    /// Which task of the run it is.
    ///
    /// Servers before Kubernetes 1.21 ignore that a Job is indexed. The pods of such a Job
    /// have no index and all count as task 0, so that none is overlooked.
    #[must_use]
    fn task(&self) -> Option<Task>;

    /// The name of the container that runs the command.
    #[must_use]
    fn main_name(&self) -> &str;

    /// The status of the container that runs the command.
    #[must_use]
    fn main(&self) -> Option<&ContainerStatus>;

    /// How the command ended, if it has.
    #[must_use]
    fn ended(&self) -> Option<&Terminated>;

    /// Whether the command runs or has run, so that there is a log.
    #[must_use]
    fn has_started(&self) -> bool;

    /// Whether no container of it runs any more.
    #[must_use]
    fn is_over(&self) -> bool;

    /// Whether the command succeeded.
    #[must_use]
    fn has_succeeded(&self) -> bool;

    /// Whether the command or an init container has failed.
    #[must_use]
    fn has_failed(&self) -> bool;

    /// The init container that failed.
    #[must_use]
    fn failed_init(&self) -> Option<(&str, &Terminated)>;

    /// When the command, or the init container that failed, ended.
    #[must_use]
    fn finished_at(&self) -> Option<Timestamp>;

    /// The number of earlier pods of its task that its Job has counted.
    #[must_use]
    fn counted_before(&self) -> u32;

    /// The number of earlier attempts of its task, each with a pod of its own.
    #[must_use]
    fn attempts_before(&self) -> u32;
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
        self.main()?.state.terminated.as_ref()
    }

    fn has_started(&self) -> bool {
        self.main()
            .is_some_and(|main| main.state.running.is_some() || main.state.terminated.is_some())
    }

    fn is_over(&self) -> bool {
        self.ended().is_some() || matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    fn has_succeeded(&self) -> bool {
        self.status.phase == "Succeeded" || self.ended().is_some_and(|ended| ended.exit_code == 0)
    }

    fn has_failed(&self) -> bool {
        self.is_over() && !self.has_succeeded()
    }

    fn failed_init(&self) -> Option<(&str, &Terminated)> {
        self.status
            .init_container_statuses
            .iter()
            .find_map(|status| {
                let ended = status.state.terminated.as_ref()?;
                (ended.exit_code != 0).then_some((status.name.as_str(), ended))
            })
    }

    fn counted_before(&self) -> u32 {
        let counts = [names::FAILURES, names::DISRUPTIONS].map(|key| {
            let text = self.metadata.annotations.get(key);
            text.and_then(|text| text.parse::<u32>().ok()).unwrap_or(0)
        });
        counts.into_iter().fold(0, u32::saturating_add)
    }

    fn attempts_before(&self) -> u32 {
        let restarts = self.metadata.labels.get(names::SET_RESTARTS);
        let restarts = restarts.and_then(|text| text.parse::<u32>().ok());
        self.counted_before().saturating_add(restarts.unwrap_or(0))
    }

    fn finished_at(&self) -> Option<Timestamp> {
        let ended = self
            .ended()
            .or_else(|| self.failed_init().map(|(_, ended)| ended));
        ended.and_then(|ended| ended.finished_at)
    }
}
