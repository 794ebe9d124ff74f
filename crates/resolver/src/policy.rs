//! What to do about pods that are not simply running.

use crate::{
    facts::{PodFacts, State},
    pod_error::PodError,
};

/// What to do about a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Make no spec: an error names the pod.
    Refuse,
    /// Make a spec without it.
    Skip,
    /// Count it as any other.
    Keep,
}

/// What to do about a pod that two selectors match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Doubled {
    /// Make no spec: an error names the pod and both roles.
    #[default]
    Refuse,
    /// It is a task of the first one.
    First,
}

/// What to do about pods by where in their life they are.
///
/// ```
/// use longshore_resolver::{Act, Policy};
/// // Whoever has ended is left out; who has not begun is an error.
/// assert_eq!(Policy::skip_finished().finished, Act::Skip);
/// // Addresses known beforehand need no pod that runs.
/// let planned = Policy { pending: Act::Keep, ..Policy::default() };
/// assert_ne!(planned, Policy::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Not started in full.
    pub pending: Act,
    /// Running and not ready.
    pub unready: Act,
    /// Being deleted.
    pub terminating: Act,
    /// Succeeded or failed.
    pub finished: Act,
    /// Matched twice.
    pub doubled: Doubled,
}

/// Every pod must run; readiness does not matter.
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

/// What to do about pods that do not run, in a word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NotRunning {
    /// Make no spec.
    #[default]
    Fail,
    /// Leave out who has ended or is ending; fail for the others.
    SkipFinished,
    /// Leave them out.
    Skip,
    /// Count those who have not begun: their addresses are known beforehand.
    Keep,
}

impl Policy {
    /// In two words: what to do about pods that do not run, and whether those that
    /// do must be ready, too.
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

    /// That of TensorFlow's resolver, which looks at the phase alone.
    #[must_use]
    pub fn tensorflow() -> Self {
        Self {
            terminating: Act::Keep,
            ..Self::default()
        }
    }

    /// Leaves out pods that have ended or are being deleted.
    #[must_use]
    pub fn skip_finished() -> Self {
        Self {
            terminating: Act::Skip,
            finished: Act::Skip,
            ..Self::default()
        }
    }

    /// Leaves out whatever does not run.
    #[must_use]
    pub fn running() -> Self {
        Self {
            pending: Act::Skip,
            ..Self::skip_finished()
        }
    }

    /// Leaves out whatever is not ready.
    #[must_use]
    pub fn ready() -> Self {
        Self {
            unready: Act::Skip,
            ..Self::running()
        }
    }

    /// As this one, for a wait: nothing is refused that may change.
    #[must_use]
    pub(crate) fn patient(self) -> Self {
        let patient = |act| if act == Act::Refuse { Act::Skip } else { act };
        Self {
            pending: patient(self.pending),
            unready: patient(self.unready),
            terminating: patient(self.terminating),
            finished: patient(self.finished),
            doubled: self.doubled,
        }
    }

    /// Whether a pod becomes a task.
    pub(crate) fn wants(&self, pod: &PodFacts) -> Result<bool, PodError> {
        let name = || pod.metadata.name.clone();
        let (act, refusal): (_, fn(String, String) -> PodError) = match pod.state() {
            State::Ready => return Ok(true),
            State::Pending => (self.pending, not_running),
            State::Finished => (self.finished, not_running),
            State::Unready => (self.unready, |name, _| PodError::NotReady { name }),
            State::Terminating => (self.terminating, |name, _| PodError::Terminating { name }),
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
