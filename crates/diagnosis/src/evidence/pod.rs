//! Pods.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{Amounts, Condition, Meta};
use crate::names::{self, Task};

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodEvidence {
    /// The pod's metadata.
    pub metadata: Meta,
    pub(crate) spec: PodSpec,
    /// The pod's status.
    pub status: PodStatus,
}

/// A pod's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The containers.
    pub containers: Vec<Container>,
    /// The init containers.
    pub init_containers: Vec<Container>,
    pub(crate) node_name: String,
    pub(crate) node_selector: BTreeMap<String, String>,
    pub(crate) affinity: Value,
    pub(crate) tolerations: Vec<Toleration>,
    /// The volumes.
    pub volumes: Vec<Value>,
    /// The service account.
    pub service_account_name: String,
    /// The priority class.
    pub priority_class_name: String,
    /// The runtime class.
    pub runtime_class_name: String,
    /// The Secrets with credentials of registries.
    pub image_pull_secrets: Vec<LocalName>,
    pub(crate) restart_policy: String,
    pub(crate) active_deadline_seconds: Option<i64>,
    #[serde(deserialize_with = "super::amounts")]
    pub(crate) overhead: Amounts,
}

/// The name of an object in the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct LocalName {
    /// The object's name.
    pub name: String,
}

/// A toleration of a taint.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Toleration {
    pub(crate) key: String,
    pub(crate) operator: String,
    pub(crate) value: String,
    pub(crate) effect: String,
}

/// The resource requests and limits of a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ResourceNeeds {
    /// The requests, by resource.
    #[serde(deserialize_with = "super::amounts")]
    pub requests: Amounts,
    /// The limits, by resource.
    #[serde(deserialize_with = "super::amounts")]
    pub limits: Amounts,
}

/// A container's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// The container's name.
    pub name: String,
    /// The image.
    pub image: String,
    /// The command.
    pub command: Vec<String>,
    pub(crate) restart_policy: String,
    /// The requests and limits.
    pub resources: ResourceNeeds,
    /// The environment variables.
    pub env: Vec<Value>,
    /// The sources of further environment variables.
    pub env_from: Vec<Value>,
}

/// A pod's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// The pod's phase.
    pub phase: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) container_statuses: Vec<ContainerStatus>,
    pub(crate) init_container_statuses: Vec<ContainerStatus>,
}

/// A container's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ContainerStatus {
    pub(crate) name: String,
    pub(crate) state: ContainerState,
    pub(crate) last_state: ContainerState,
    pub(crate) restart_count: u32,
}

/// A container's state: at most one of the three is set.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ContainerState {
    pub(crate) waiting: Option<Waiting>,
    pub(crate) running: Option<Running>,
    pub(crate) terminated: Option<Terminated>,
}

/// Why a container waits.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Waiting {
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// A running container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Running {}

/// How a container ended.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Terminated {
    /// The exit code.
    pub exit_code: i32,
    pub(crate) signal: i32,
    /// The reason in one word.
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) finished_at: Option<Timestamp>,
}

impl PodEvidence {
    /// A condition that is true.
    pub(crate) fn condition(&self, kind: &str) -> Option<&Condition> {
        let mut conditions = self.status.conditions.iter();
        conditions.find(|condition| condition.kind == kind && condition.status == "True")
    }

    /// The statuses of all containers, init containers first.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = &ContainerStatus> {
        let init = self.status.init_container_statuses.iter();
        init.chain(&self.status.container_statuses)
    }

    /// Which task of the run it is.
    ///
    /// Servers before Kubernetes 1.21 ignore that a Job is indexed. The pods of such a Job
    /// have no index and all count as task 0, so that none is overlooked.
    #[must_use]
    pub fn task(&self) -> Option<Task> {
        let meta = &self.metadata;
        let index = meta
            .annotations
            .get(names::COMPLETION_INDEX)
            .or_else(|| meta.labels.get(names::COMPLETION_INDEX));
        let index = match index {
            Some(index) => index.parse().ok()?,
            None => meta.owner("Job").map(|_| 0)?,
        };
        let role = meta.labels.get(names::ROLE)?.clone();
        Some(Task { role, index })
    }

    /// The name of the container that runs the command.
    #[must_use]
    pub fn main_name(&self) -> &str {
        let named = self.metadata.annotations.get(names::CONTAINER);
        named.map_or(names::MAIN, String::as_str)
    }

    /// The status of the container that runs the command.
    pub(crate) fn main(&self) -> Option<&ContainerStatus> {
        self.status
            .container_statuses
            .iter()
            .find(|status| status.name == self.main_name())
    }

    /// How the command ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<&Terminated> {
        self.main()?.state.terminated.as_ref()
    }

    /// Whether the command runs or has run, so that there is a log.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.main()
            .is_some_and(|main| main.state.running.is_some() || main.state.terminated.is_some())
    }

    /// Whether no container of it runs any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ended().is_some() || matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether the command succeeded.
    #[must_use]
    pub fn has_succeeded(&self) -> bool {
        self.status.phase == "Succeeded" || self.ended().is_some_and(|ended| ended.exit_code == 0)
    }

    /// Whether the command or an init container has failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.is_over() && !self.has_succeeded()
    }

    /// The init container that failed.
    pub(crate) fn failed_init(&self) -> Option<(&str, &Terminated)> {
        self.status
            .init_container_statuses
            .iter()
            .find_map(|status| {
                let ended = status.state.terminated.as_ref()?;
                (ended.exit_code != 0).then_some((status.name.as_str(), ended))
            })
    }

    /// When the command, or the init container that failed, ended.
    #[must_use]
    pub fn finished_at(&self) -> Option<Timestamp> {
        let ended = self
            .ended()
            .or_else(|| self.failed_init().map(|(_, ended)| ended));
        ended.and_then(|ended| ended.finished_at)
    }
}
