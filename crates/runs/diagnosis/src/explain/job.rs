//! Causes from a Job and its events, if no pod shows them.

use super::{
    Cause, ClusterEvidence, Explanation, WaitLimit, disrupted, mount, quota, refused,
    text::{or, short, with_message},
};
use crate::{
    evidence::{JobEvidence, WorkloadEvidence},
    names,
};
use longshore_model::facts::Condition;

/// Explains the failure of a Job if no pod shows the cause.
pub(crate) fn job_failure(
    job: &JobEvidence,
    condition: &Condition,
    cluster: &ClusterEvidence,
) -> Explanation {
    let seen = format!("Job: {}", or(&condition.reason, "Failed"));
    let found = match condition.reason.as_str() {
        "DeadlineExceeded" => {
            let cause = match job.spec.active_deadline_seconds {
                Some(seconds) => format!("the run took longer than its `timeout` of {seconds} s"),
                None => "the run took longer than its `timeout`".to_owned(),
            };
            Explanation::new(Cause::Deadline, cause, "raise `timeout`")
        }
        "BackoffLimitExceeded" | "FailedIndexes" | "MaxFailedIndexesExceeded" => {
            gone(job, cluster).unwrap_or_else(|| backoff(job, condition))
        }
        "PodFailurePolicy" => Explanation::new(
            Cause::FailurePolicy,
            with_message(
                "the Job's pod failure policy ended it",
                &short(&condition.message),
            ),
            "read the log of the task that the message names",
        ),
        reason => Explanation::new(
            Cause::Unknown,
            with_message(
                format!("the Job failed ({})", or(reason, "no reason given")),
                &condition.message,
            ),
            "check the Job's events: `longshore describe job`",
        ),
    };
    found.of_job(job).seen(seen)
}

fn backoff(job: &JobEvidence, condition: &Condition) -> Explanation {
    let cause = match job.status.failed {
        0 => "its tasks failed more often than `retries` allows".to_owned(),
        failed => format!(
            "{failed} attempt(s) of its tasks failed, more than `retries` allows, and no pod is left to show the cause"
        ),
    };
    let remedy = "check the Job's events, `longshore describe job`; run it again to see the logs";
    Explanation::new(Cause::BackoffLimit, cause, remedy).seen(short(&condition.message))
}

/// Explains the end of deleted pods by the first cause in their events.
fn gone(job: &JobEvidence, cluster: &ClusterEvidence) -> Option<Explanation> {
    let events = cluster.of_pods_named(&job.metadata.name);
    for event in &events {
        let mut pod = longshore_model::facts::PodFacts::default();
        pod.metadata.name = event.involved_object.name.clone();
        let found = match event.reason.as_str() {
            "Evicted" => disrupted::evicted(&event.message),
            "Preempted" => disrupted::preempted(),
            "TaintManagerEviction" => disrupted::tainted(&pod, cluster),
            "NodeNotReady" => disrupted::lost(&pod, ""),
            _ => continue,
        };
        let mut found = mount::seen(found, event);
        found.pod = Some(pod.metadata.name);
        return Some(found);
    }
    // A container was stopped without any of these causes, so the pod was deleted.
    let killing = events.iter().find(|event| event.reason == "Killing")?;
    let mut found = mount::seen(disrupted::deleted(), killing);
    found.pod = Some(killing.involved_object.name.clone());
    Some(found)
}

/// Explains why a Job has fewer pods than desired, if the cause is known.
pub(crate) fn no_pods(
    job: &JobEvidence,
    cluster: &ClusterEvidence,
) -> Option<(Explanation, WaitLimit)> {
    if job.is_over() {
        return None;
    }
    if job.spec.suspend {
        return Some((suspended(job, cluster), WaitLimit::StartTimeout));
    }
    let there = match job.is_independent() {
        true => job.status.active,
        false => job.status.active.saturating_add(job.status.succeeded),
    };
    if there >= job.wanted() {
        return None;
    }
    let events = cluster.of_job(&job.metadata);
    let Some(event) = events.iter().find(|event| event.reason == "FailedCreate") else {
        return Some((by_quotas(job, cluster)?, WaitLimit::StartTimeout));
    };
    let (found, limit) = refused::sort(&event.message);
    Some((mount::seen(found, event).of_job(job), limit))
}

/// Checks the quotas, because events expire.
fn by_quotas(job: &JobEvidence, cluster: &ClusterEvidence) -> Option<Explanation> {
    let quotas = cluster.quotas.as_deref()?;
    let full = quota::full(&job.spec.template.spec, quotas)?;
    let found = Explanation::new(Cause::Quota, full.problem, full.remedy);
    Some(found.of_job(job).seen("ResourceQuota"))
}

fn suspended(job: &JobEvidence, cluster: &ClusterEvidence) -> Explanation {
    let found = if job.is_cancelled() {
        Explanation::new(
            Cause::Cancelled,
            "the run was cancelled",
            "run it again if this was not intended",
        )
    } else if let Some(reason) = job.metadata.annotations.get(names::STOPPED) {
        Explanation::new(
            Cause::Suspended,
            with_message("it was stopped with the run", reason),
            "run it again",
        )
    } else if let Some(queue) = job.queue() {
        queued(queue, cluster.workload_of(job)).seen(format!("label {}", names::QUEUE))
    } else {
        Explanation::new(
            Cause::Suspended,
            "its Job is suspended and creates no pods",
            format!(
                "resume it: `kubectl patch job {} --patch '{{\"spec\":{{\"suspend\":false}}}}'`",
                job.metadata.name
            ),
        )
    };
    found.of_job(job).seen("Job: suspend")
}

/// Explains from the Workload why Kueue has not admitted the Job yet.
fn queued(queue: &str, workload: Option<&WorkloadEvidence>) -> Explanation {
    let cause = format!("it waits in the queue {queue:?}");
    let Some(workload) = workload else {
        let remedy =
            format!("wait for its turn: `kubectl describe localqueue {queue}` shows details");
        return Explanation::new(Cause::Queued, cause, remedy);
    };
    let name = &workload.metadata.name;
    if !workload.spec.active {
        let cause = format!("{cause}, and its Workload was deactivated");
        let remedy = format!(
            "queue it again: `kubectl patch workload {name} --type merge --patch '{{\"spec\":{{\"active\":true}}}}'`"
        );
        return Explanation::new(Cause::Queued, cause, remedy).seen("Workload: active false");
    }
    let remedy = format!("wait for its turn: `kubectl describe workload {name}` shows details");
    match workload.pending() {
        Some(condition) if condition.message.contains("> maximum capacity") => {
            let cause = with_message(cause, &short(&condition.message));
            let remedy = "request less: the request exceeds the queue's capacity";
            Explanation::new(Cause::Queued, cause, remedy).seen("Workload: maximum capacity")
        }
        Some(condition) => {
            let cause = with_message(cause, &short(&condition.message));
            let seen = format!("Workload: {} {}", condition.kind, condition.reason);
            Explanation::new(Cause::Queued, cause, remedy).seen(seen)
        }
        None => Explanation::new(Cause::Queued, cause, remedy),
    }
}
