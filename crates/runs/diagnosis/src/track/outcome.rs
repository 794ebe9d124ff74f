//! Builds outcomes from explanations.

use crate::evidence::RunPod as _;
use crate::{
    evidence::JobEvidence,
    explain::{self, Cause, ClusterEvidence, Explanation},
    names,
    outcome::{Ending, Outcome},
};
use longshore_model::facts::{Condition, PodFacts};

use super::Track;

/// The outcome with an explanation.
fn explained(ending: Ending, exit_code: i32, explanation: Explanation) -> Outcome {
    Outcome {
        ending,
        exit_code,
        task: explanation.task(),
        reason: explanation.sentence(),
        remedy: Some(explanation.remedy.clone()),
        explanation: Some(explanation),
        gaps: 0,
        began: None,
        finished: None,
    }
}

pub(super) fn job_outcome(
    job: &JobEvidence,
    condition: &Condition,
    cluster: &ClusterEvidence,
) -> Outcome {
    let explanation = explain::job_failure(job, condition, cluster);
    explained(Ending::Failed, 1, explanation)
}

pub(super) fn was_killed(pod: &PodFacts) -> bool {
    pod.metadata.deletion_timestamp.is_some() || ended_by_signal(pod)
}

/// Returns true if the command was ended by a signal that ends containers, and not by the
/// out-of-memory killer.
pub(super) fn ended_by_signal(pod: &PodFacts) -> bool {
    pod.ended()
        .is_some_and(|ended| matches!(ended.exit_code, 137 | 143) && ended.reason != "OOMKilled")
}

impl Track {
    /// The outcome of a run whose first failed task is this pod, with the number of other failed
    /// tasks. `last_line` is the last line of its log, if it has been read.
    pub fn failed_outcome(&self, pod: &PodFacts, others: u32, last_line: Option<&str>) -> Outcome {
        // Only some readers of a run have its log, so the end of the run does not depend on it,
        // although the log explains more than the status.
        let (_, ran) = explain::failure(pod, None, &self.cluster);
        let (mut explanation, _) = explain::failure(pod, last_line, &self.cluster);
        explanation.others = others;
        let job = explanation
            .role
            .as_ref()
            .and_then(|role| self.jobs.get(role));
        if let Some(failure) = job.and_then(JobEvidence::failure) {
            explanation = explanation.seen(format!("Job: {}", failure.reason));
        }
        for fact in self.restarted_before(pod) {
            explanation = explanation.seen(fact);
        }
        if !ran {
            return not_started(explanation);
        }
        let code = pod.ended().map_or(1, |ended| ended.exit_code);
        // A failed run never exits with 0.
        let code = if code == 0 { 1 } else { code };
        explained(Ending::Failed, code, explanation)
    }
}

/// The exit code of a run whose cluster was stopped, the same as for an unreachable cluster.
const CLUSTER_STOPPED: i32 = 3;

pub(super) fn stopped_with_cluster(explanation: Explanation) -> Outcome {
    explained(Ending::Failed, CLUSTER_STOPPED, explanation)
}

/// The end that a client recorded on the Jobs of a run. The first recorded end decides, because the
/// pods that showed it may be gone. A run that was given up before its tasks started may be
/// resumed, so only its state counts.
pub fn recorded<'a>(jobs: impl IntoIterator<Item = &'a JobEvidence>) -> Option<Outcome> {
    let ended = jobs.into_iter().filter(|job| {
        let end = job.end().map(|end| end.ending);
        matches!(end, Some(Ending::Succeeded | Ending::Failed))
    });
    // Clients record the end on the first Job before the others.
    let first = ended.min_by_key(|job| &job.metadata.name)?;
    Some(noted_outcome(first))
}

/// The end of a run, if its Jobs show it without their pods: the recorded end, or the user's
/// cancellation before an end was recorded.
pub fn known_end(jobs: &[JobEvidence]) -> Option<Outcome> {
    let is_cancelled = jobs.iter().any(JobEvidence::is_cancelled);
    recorded(jobs).or_else(|| is_cancelled.then(|| cancelled(CANCELLED)))
}

/// The outcome that was recorded on a Job when it was stopped. A run that was given up before its
/// tasks started leaves no pods, and a failed run may have lost them.
pub(super) fn noted_outcome(job: &JobEvidence) -> Outcome {
    if job.end().map(|end| end.ending) == Some(Ending::Succeeded) {
        return succeeded();
    }
    let explanation = job.note().unwrap_or_else(|| {
        let text = job.metadata.annotations.get(names::STOPPED);
        let text = text.map_or("", String::as_str);
        // The text before the reason is the time.
        let reason = text.split_once(": ").map_or(text, |(_, reason)| reason);
        Explanation::new(Cause::Unknown, reason, "run it again")
    });
    match job.end() {
        Some(end) if end.ending == Ending::Failed => {
            // A failed run never exits with 0.
            let code = if end.exit_code == 0 { 1 } else { end.exit_code };
            explained(Ending::Failed, code, explanation)
        }
        _ => not_started(explanation),
    }
}

/// The outcome of a run whose tasks have succeeded.
pub(super) fn succeeded() -> Outcome {
    Outcome {
        exit_code: 0,
        ..plain(Ending::Succeeded, "all tasks succeeded")
    }
}

pub(super) fn not_started(explanation: Explanation) -> Outcome {
    explained(Ending::NotStarted, 4, explanation)
}

/// The reason of a run that was cancelled.
pub(super) const CANCELLED: &str = "the run was cancelled";

/// The outcome of a run that the user ended.
pub(super) fn cancelled(reason: &str) -> Outcome {
    Outcome {
        exit_code: 130,
        ..plain(Ending::Cancelled, reason)
    }
}

/// An outcome without an explanation.
fn plain(ending: Ending, reason: &str) -> Outcome {
    Outcome {
        ending,
        exit_code: 0,
        task: None,
        reason: reason.to_owned(),
        remedy: None,
        explanation: None,
        gaps: 0,
        began: None,
        finished: None,
    }
}
