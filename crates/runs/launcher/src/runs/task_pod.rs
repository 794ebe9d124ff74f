//! A pod as the task of a run.

use longshore_diagnosis::evidence::RunPod as _;
use longshore_diagnosis::names::Task;
use longshore_model::facts::PodFacts;
use serde::Deserialize;

/// A pod as the task of a run. Parse it with `Item::typed`.
///
/// ```
/// use longshore_launcher::runs::TaskPod;
/// use serde_json::json;
///
/// let pod: TaskPod = serde_json::from_value(json!({
///     "metadata": {
///         "name": "digits-x7k2p-worker-1-abcde",
///         "labels": {"longshore.dev/role": "worker"},
///         "annotations": {"batch.kubernetes.io/job-completion-index": "1"},
///     },
///     "status": {"phase": "Running", "containerStatuses": [
///         {"name": "main", "state": {"terminated": {"exitCode": 3}}},
///     ]},
/// }))?;
/// assert_eq!(pod.task().unwrap().to_string(), "worker/1");
/// assert!(pod.is_over());
/// assert_eq!(pod.exit_code(), Some(3));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct TaskPod(PodFacts);

impl TaskPod {
    /// The pod's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.metadata.name
    }

    /// The pod's phase.
    #[must_use]
    pub fn phase(&self) -> &str {
        &self.0.status.phase
    }

    /// The task of the run. `None` if the pod does not belong to a run.
    #[must_use]
    pub fn task(&self) -> Option<Task> {
        self.0.task()
    }

    /// The name of the container that runs the command.
    #[must_use]
    pub fn main_container(&self) -> &str {
        self.0.main_name()
    }

    /// Returns true if the command is running or has run.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.0.has_started()
    }

    /// Returns true if the command has ended, or no container of the pod is running any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.is_over()
    }

    /// The exit code of the command, if it has ended.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        self.0.ended().map(|ended| ended.exit_code)
    }
}
