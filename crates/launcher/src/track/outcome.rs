//! Outcomes in words, from what explains them.

use crate::{
    evidence::{Condition, PodEvidence},
    explain::{self, Explanation},
    follow::{Ending, Outcome},
    names::Task,
};

pub(super) fn job_outcome(role: &str, condition: &Condition) -> Outcome {
    let explanation = explain::job_failure(condition);
    Outcome {
        ending: Ending::Failed,
        exit_code: 1,
        task: None,
        reason: format!("{role}: {}", explanation.cause),
        remedy: Some(explanation.remedy),
    }
}

pub(super) fn was_killed(pod: &PodEvidence) -> bool {
    pod.metadata.deletion_timestamp.is_some()
        || pod.ended().is_some_and(|ended| {
            matches!(ended.exit_code, 137 | 143) && ended.reason != "OOMKilled"
        })
}

/// The outcome of a run whose first failed task this pod was. `last_line` is
/// the last line of its log, once that has been read.
pub(crate) fn failed_outcome(pod: &PodEvidence, last_line: Option<&str>) -> Outcome {
    let (explanation, ran) = explain::failure(pod, last_line);
    if !ran {
        return not_started(pod.task(), &explanation);
    }
    let code = pod.ended().map_or(1, |ended| ended.exit_code);
    Outcome {
        ending: Ending::Failed,
        // A failed run does not exit with 0, whatever the pod says.
        exit_code: if code == 0 { 1 } else { code },
        reason: named(pod.task().as_ref(), &explanation.cause),
        task: pod.task(),
        remedy: Some(explanation.remedy),
    }
}

pub(super) fn not_started(task: Option<Task>, explanation: &Explanation) -> Outcome {
    Outcome {
        ending: Ending::NotStarted,
        exit_code: 4,
        reason: named(task.as_ref(), &explanation.cause),
        task,
        remedy: Some(explanation.remedy.clone()),
    }
}

fn named(task: Option<&Task>, cause: &str) -> String {
    task.map_or_else(|| cause.to_owned(), |task| format!("{task}: {cause}"))
}
