//! Explains why a task does not start, or failed: one cause and one remedy, from evidence. Pure.

mod cause;
mod cluster;
mod code;
mod container;
mod disrupted;
mod ended;
mod excluded;
mod image;
mod initializing;
mod job;
mod missing;
mod mount;
mod note;
mod notifier;
mod port;
mod pulling;
pub mod quota;
mod refused;
mod schedule;
#[cfg(test)]
mod tests;
mod text;
mod waiting;

use std::{fmt, time::Duration};

use longshore_model::facts::PodFacts;
use serde::{Deserialize, Serialize};

use crate::evidence::RunPod as _;
use crate::{evidence::JobEvidence, names::Task};
pub use cause::Cause;
pub use cluster::ClusterEvidence;
pub use disrupted::away;
pub use ended::failure;
pub use initializing::initializing;
pub(crate) use job::{job_failure, no_pods};
pub use notifier::notifier;
pub use pulling::pulling;
pub use text::cut;
pub(crate) use waiting::{is_idle, slow, stuck};

/// An explanation with one cause and one remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The kind of cause, whose name is stable.
    pub kind: Cause,
    /// The role of the task.
    #[serde(default)]
    pub role: Option<String>,
    /// The task's index within its role.
    #[serde(default)]
    pub index: Option<u32>,
    /// The task's pod.
    #[serde(default)]
    pub pod: Option<String>,
    /// The problem.
    pub cause: String,
    /// The recommended action.
    pub remedy: String,
    /// The evidence: reasons of events and conditions, and exit codes.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// The number of other tasks that also failed or wait.
    #[serde(default)]
    pub others: u32,
}

impl Explanation {
    /// Creates an explanation that concerns no particular task.
    #[must_use]
    pub fn new(kind: Cause, cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            kind,
            role: None,
            index: None,
            pod: None,
            cause: cause.into(),
            remedy: remedy.into(),
            evidence: Vec::new(),
            others: 0,
        }
    }

    /// Adds a piece of evidence.
    #[must_use]
    pub fn seen(mut self, fact: impl Into<String>) -> Self {
        let fact = fact.into();
        if !fact.is_empty() && !self.evidence.contains(&fact) {
            self.evidence.push(fact);
        }
        self
    }

    /// Sets the task and the pod.
    fn of_pod(mut self, pod: &PodFacts) -> Self {
        let task = pod.task();
        self.role = task.as_ref().map(|task| task.role.clone());
        self.index = task.map(|task| task.index);
        self.pod = Some(pod.metadata.name.clone()).filter(|name| !name.is_empty());
        self
    }

    fn of_job(mut self, job: &JobEvidence) -> Self {
        self.role = job.role().map(str::to_owned);
        self
    }

    /// The task, if the cause concerns one.
    #[must_use]
    pub fn task(&self) -> Option<Task> {
        Some(Task {
            role: self.role.clone()?,
            index: self.index?,
        })
    }

    /// The cause, prefixed with the name of the task or role.
    #[must_use]
    pub fn sentence(&self) -> String {
        let others = match self.others {
            0 => String::new(),
            1 => " (and 1 other task)".to_owned(),
            others => format!(" (and {others} other tasks)"),
        };
        match (self.task(), &self.role) {
            (Some(task), _) => format!("{task}: {}{others}", self.cause),
            (None, Some(role)) => format!("{role}: {}{others}", self.cause),
            (None, None) => format!("{}{others}", self.cause),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.cause, self.remedy)
    }
}

/// The maximum time that a cause may last before the run is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitLimit {
    /// The problem does not resolve by itself.
    None,
    /// The problem may resolve by itself soon, for example when an object is created or a registry
    /// answers again.
    Short(Duration),
    /// The problem may resolve when the cluster has capacity. The limit is the run's start timeout.
    StartTimeout,
}

impl WaitLimit {
    const fn seconds(seconds: u64) -> Self {
        Self::Short(Duration::from_secs(seconds))
    }
}
