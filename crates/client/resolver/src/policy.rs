//! The policy for pods that are not running and ready.

use longshore_model::facts::{PodFacts, Stage};

use crate::pod_error::PodError;

/// The treatment of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Fail with an error that names the pod.
    Refuse,
    /// Skip the pod.
    Skip,
    /// Include the pod like any other.
    Keep,
}

/// The treatment of a pod that two selectors match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Doubled {
    /// Fail with an error that names the pod and both roles.
    #[default]
    Refuse,
    /// Include the pod in the role that matched first.
    First,
    /// Include the pod once for each selector.
    Each,
}

/// The treatment of a pod in each stage of its lifecycle.
///
/// ```
/// use longshore_resolver::{Act, Policy};
/// // Finished pods are skipped; pods that have not started are an error.
/// assert_eq!(Policy::skip_finished().finished, Act::Skip);
/// // If addresses are known in advance, pods need not be running.
/// let planned = Policy { pending: Act::Keep, ..Policy::default() };
/// assert_ne!(planned, Policy::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The pod has containers that have not started.
    pub pending: Act,
    /// The pod is running and not ready.
    pub unready: Act,
    /// The pod is being deleted.
    pub terminating: Act,
    /// The pod has succeeded or failed.
    pub finished: Act,
    /// Two selectors match the pod.
    pub doubled: Doubled,
}

/// Every pod must be running. Readiness is not required.
impl Default for Policy {
    fn default() -> Self {
        Self {
            pending: Act::Refuse,
            unready: Act::Keep,
            terminating: Act::Refuse,
            finished: Act::Refuse,
            doubled: Doubled::Refuse,
        }
    }
}

/// The treatment of all pods that are not running, as a single choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NotRunning {
    /// Fail.
    #[default]
    Fail,
    /// Skip pods that have finished or are being deleted. Fail for all others.
    SkipFinished,
    /// Skip all pods that are not running.
    Skip,
    /// Include pods that have not started, because their addresses are known in
    /// advance.
    Keep,
}

impl Policy {
    /// Returns the policy for pods that are not running, and for whether running
    /// pods must also be ready.
    ///
    /// ```
    /// use longshore_resolver::{Act, NotRunning, Policy};
    /// assert_eq!(Policy::of(NotRunning::Skip, true), Policy::ready());
    /// assert_eq!(Policy::of(NotRunning::Fail, true).unready, Act::Refuse);
    /// ```
    #[must_use]
    pub fn of(not_running: NotRunning, ready: bool) -> Self {
        let mut policy = match not_running {
            NotRunning::Fail => Self::default(),
            NotRunning::SkipFinished => Self::skip_finished(),
            NotRunning::Skip => Self::running(),
            NotRunning::Keep => Self {
                pending: Act::Keep,
                ..Self::skip_finished()
            },
        };
        if ready {
            policy.unready = match not_running {
                NotRunning::Skip => Act::Skip,
                _ => Act::Refuse,
            };
        }
        policy
    }

    /// Returns the policy of TensorFlow's `KubernetesClusterResolver`, which checks
    /// only the phase, and counts a pod once for each selector that matches it.
    #[must_use]
    pub fn tensorflow() -> Self {
        Self {
            terminating: Act::Keep,
            doubled: Doubled::Each,
            ..Self::default()
        }
    }

    /// Leaves out pods that have finished or are being deleted.
    #[must_use]
    pub fn skip_finished() -> Self {
        Self {
            terminating: Act::Skip,
            finished: Act::Skip,
            ..Self::default()
        }
    }

    /// Leaves out pods that are not running.
    #[must_use]
    pub fn running() -> Self {
        Self {
            pending: Act::Skip,
            ..Self::skip_finished()
        }
    }

    /// Leaves out pods that are not ready.
    #[must_use]
    pub fn ready() -> Self {
        Self {
            unready: Act::Skip,
            ..Self::running()
        }
    }

    /// Returns this policy for use while waiting: pods that may still become tasks
    /// are skipped, not refused.
    #[must_use]
    pub(crate) fn for_waiting(self) -> Self {
        let for_waiting = |act| if act == Act::Refuse { Act::Skip } else { act };
        Self {
            pending: for_waiting(self.pending),
            unready: for_waiting(self.unready),
            terminating: for_waiting(self.terminating),
            finished: for_waiting(self.finished),
            doubled: self.doubled,
        }
    }

    /// Returns true if a pod becomes a task.
    pub(crate) fn includes(&self, pod: &PodFacts) -> Result<bool, PodError> {
        let name = || pod.metadata.name.clone();
        let (act, refusal): (_, fn(String, String) -> PodError) = match pod.stage() {
            Stage::Ready => return Ok(true),
            Stage::Pending => (self.pending, not_running),
            Stage::Finished => (self.finished, not_running),
            Stage::Unready => (self.unready, |name, _| PodError::NotReady { name }),
            Stage::Terminating => (self.terminating, |name, _| PodError::Terminating { name }),
        };
        match act {
            Act::Keep => Ok(true),
            Act::Skip => Ok(false),
            Act::Refuse => Err(refusal(name(), pod.status.phase.clone())),
        }
    }
}

fn not_running(name: String, phase: String) -> PodError {
    PodError::NotRunning { name, phase }
}
