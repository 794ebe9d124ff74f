//! What pods and Jobs say about a run, read from their JSON: the part that
//! following, explaining and listing need.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use crate::names::{self, Task};

/// Metadata of a pod or Job.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct Meta {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub creation_timestamp: Option<Timestamp>,
    pub deletion_timestamp: Option<Timestamp>,
}

/// A condition of a pod or Job.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    pub last_transition_time: Option<Timestamp>,
}

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct PodEvidence {
    pub metadata: Meta,
    pub spec: PodSpec,
    pub status: PodStatus,
}

/// A pod's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct PodSpec {
    pub containers: Vec<Container>,
    pub init_containers: Vec<Container>,
}

/// A container's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct Container {
    pub name: String,
    pub image: String,
    pub command: Vec<String>,
}

/// A pod's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct PodStatus {
    pub phase: String,
    pub reason: String,
    pub message: String,
    pub conditions: Vec<Condition>,
    pub container_statuses: Vec<ContainerStatus>,
    pub init_container_statuses: Vec<ContainerStatus>,
}

/// A container's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct ContainerStatus {
    pub name: String,
    pub state: ContainerState,
}

/// A container's state: one of the three is set, or none yet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct ContainerState {
    pub waiting: Option<Waiting>,
    pub running: Option<Running>,
    pub terminated: Option<Terminated>,
}

/// Why a container waits.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct Waiting {
    pub reason: String,
    pub message: String,
}

/// A running container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Running {}

/// How a container ended.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct Terminated {
    pub exit_code: i32,
    pub signal: i32,
    pub reason: String,
    pub message: String,
    pub finished_at: Option<Timestamp>,
}

impl PodEvidence {
    /// Which task of the run it is.
    #[must_use]
    pub fn task(&self) -> Option<Task> {
        let meta = &self.metadata;
        let index = meta
            .annotations
            .get(names::COMPLETION_INDEX)
            .or_else(|| meta.labels.get(names::COMPLETION_INDEX))?;
        let role = meta.labels.get(names::ROLE)?;
        Some(Task {
            role: role.clone(),
            index: index.parse().ok()?,
        })
    }

    /// The status of the container that runs the command.
    #[must_use]
    pub fn main(&self) -> Option<&ContainerStatus> {
        self.status
            .container_statuses
            .iter()
            .find(|status| status.name == names::MAIN)
    }

    /// How the command ended, once it has.
    #[must_use]
    pub fn ended(&self) -> Option<&Terminated> {
        self.main()?.state.terminated.as_ref()
    }

    /// Whether the command runs or has run: there is a log.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.main()
            .is_some_and(|main| main.state.running.is_some() || main.state.terminated.is_some())
    }

    /// Whether nothing runs in it any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ended().is_some() || matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether the command ended well.
    #[must_use]
    pub fn has_succeeded(&self) -> bool {
        self.status.phase == "Succeeded" || self.ended().is_some_and(|ended| ended.exit_code == 0)
    }

    /// Whether the pod has failed, be it the command or what comes before it.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.is_over() && !self.has_succeeded()
    }

    /// The init container that failed.
    #[must_use]
    pub fn failed_init(&self) -> Option<(&str, &Terminated)> {
        self.status
            .init_container_statuses
            .iter()
            .find_map(|status| {
                let ended = status.state.terminated.as_ref()?;
                (ended.exit_code != 0).then_some((status.name.as_str(), ended))
            })
    }

    /// When the command, or what failed before it, ended.
    #[must_use]
    pub fn finished_at(&self) -> Option<Timestamp> {
        let ended = self
            .ended()
            .or_else(|| self.failed_init().map(|(_, ended)| ended));
        ended.and_then(|ended| ended.finished_at)
    }
}

/// A Job.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct JobEvidence {
    pub metadata: Meta,
    pub spec: JobSpec,
    pub status: JobStatus,
}

/// A Job's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct JobSpec {
    pub completions: Option<u32>,
    pub backoff_limit: Option<u32>,
    pub suspend: bool,
}

/// A Job's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct JobStatus {
    pub conditions: Vec<Condition>,
    pub active: u32,
    pub succeeded: u32,
    pub failed: u32,
    pub start_time: Option<Timestamp>,
    pub completion_time: Option<Timestamp>,
}

impl JobEvidence {
    /// The role that it runs.
    #[must_use]
    pub fn role(&self) -> Option<&str> {
        self.metadata.labels.get(names::ROLE).map(String::as_str)
    }

    fn condition(&self, kinds: [&str; 2]) -> Option<&Condition> {
        let mut conditions = self.status.conditions.iter();
        conditions.find(|condition| {
            condition.status == "True" && kinds.contains(&condition.kind.as_str())
        })
    }

    /// Whether all its tasks succeeded.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.condition(["Complete", "SuccessCriteriaMet"]).is_some()
    }

    /// Why it failed, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<&Condition> {
        self.condition(["Failed", "FailureTarget"])
    }

    /// When it came to its end.
    #[must_use]
    pub fn over_since(&self) -> Option<Timestamp> {
        let ends = self.status.conditions.iter().filter(|condition| {
            condition.status == "True" && matches!(condition.kind.as_str(), "Complete" | "Failed")
        });
        ends.filter_map(|condition| condition.last_transition_time)
            .min()
    }

    /// Whether it has come to an end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_complete() || self.failure().is_some()
    }

    /// Whether the user cancelled it.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.metadata.annotations.contains_key(names::CANCELLED)
    }

    /// Whether a failed task is not started again.
    #[must_use]
    pub fn gives_up(&self) -> bool {
        self.spec.backoff_limit == Some(0) || self.failure().is_some()
    }
}
