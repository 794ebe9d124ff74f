//! Counts a Job's pods: who is active, who is newly finished, who was counted.
//!
//! A finished pod is counted in three steps that survive a crash in between:
//! its uid goes into `uncountedTerminatedPods`, its finalizer is taken off,
//! and only then the uid becomes one in `succeeded` or `failed`. Indexed Jobs
//! need no uids for successes: `completedIndexes` is a set.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobStatus;

use super::{
    backoff::Failures,
    facts::{Phase, PodFacts},
    failure_policy::{Verdict, verdict},
    indexes::IndexSet,
    spec::Wishes,
};

/// What the pods come to.
#[derive(Debug, Default)]
pub(crate) struct Tally<'a> {
    /// Pods neither finished nor going.
    pub(crate) active: Vec<&'a PodFacts>,
    /// Pods going but not finished.
    pub(crate) terminating: Vec<&'a PodFacts>,
    /// Active pods that are ready.
    pub(crate) ready: usize,
    /// Completed indexes, with the new ones.
    pub(crate) completed: IndexSet,
    /// Failed indexes, with the new ones.
    pub(crate) failed_indexes: IndexSet,
    /// Successes, counted or not.
    pub(crate) succeeded: u64,
    /// Failures, counted or not.
    pub(crate) failed: u64,
    /// Pods that are counted once the status is stored: their finalizer may go.
    pub(crate) release: Vec<&'a PodFacts>,
    /// Failed pods of indexes that go on: their finalizer stays until they are
    /// replaced, since they carry the index's count of failures. By index.
    pub(crate) replace: BTreeMap<u32, (&'a PodFacts, Verdict)>,
    /// Why the failure policy fails the Job.
    pub(crate) fail_job: Option<String>,
    /// Failures in a row, with the new ones.
    pub(crate) failures: Failures,
}

/// Moves uids whose pods no longer carry the finalizer into the counters.
pub(crate) fn settle(status: &mut JobStatus, wishes: &Wishes<'_>, pods: &[&PodFacts]) {
    let tracked: HashSet<&str> = pods
        .iter()
        .filter(|pod| pod.tracked)
        .map(|pod| pod.uid.as_str())
        .collect();
    let Some(uncounted) = status.uncounted_terminated_pods.as_mut() else {
        return;
    };
    let take = |list: &mut Option<Vec<String>>| {
        let uids = list.take().unwrap_or_default();
        let before = uids.len();
        let left: Vec<String> = uids
            .into_iter()
            .filter(|uid| tracked.contains(uid.as_str()))
            .collect();
        let taken = before - left.len();
        *list = (!left.is_empty()).then_some(left);
        i32::try_from(taken).unwrap_or(i32::MAX)
    };
    let succeeded = take(&mut uncounted.succeeded);
    let failed = take(&mut uncounted.failed);
    if !wishes.indexed && succeeded > 0 {
        status.succeeded = Some(status.succeeded.unwrap_or(0).saturating_add(succeeded));
    }
    if failed > 0 {
        status.failed = Some(status.failed.unwrap_or(0).saturating_add(failed));
    }
}

/// Counts the pods and adds the newly finished ones to the status' lists of
/// uncounted uids.
pub(crate) fn tally<'a>(
    status: &mut JobStatus,
    wishes: &Wishes<'_>,
    pods: &[&'a PodFacts],
    failures: Failures,
    now: Timestamp,
) -> Tally<'a> {
    let mut tally = Tally {
        failures,
        ..Tally::default()
    };
    if wishes.indexed {
        tally.completed = read_indexes(status.completed_indexes.as_deref(), wishes);
        tally.failed_indexes = read_indexes(status.failed_indexes.as_deref(), wishes);
    }
    let uncounted = status.uncounted_terminated_pods.get_or_insert_default();
    let mut finished: Vec<&'a PodFacts> = Vec::new();
    for pod in pods.iter().copied() {
        if pod.is_active() {
            tally.active.push(pod);
            tally.ready += usize::from(pod.ready);
        } else if pod.is_terminating() {
            tally.terminating.push(pod);
        }
        if pod.tracked && (pod.phase == Phase::Succeeded || is_failed(pod, wishes)) {
            finished.push(pod);
        }
    }
    finished.sort_by_key(|pod| (pod.finished.unwrap_or(now), &pod.name));

    // When the newly counted pods ended, and whether they failed.
    let mut fresh: Vec<(Timestamp, bool)> = Vec::new();
    // Successes first: an index that has one cannot fail.
    for pod in finished
        .iter()
        .copied()
        .filter(|pod| pod.phase == Phase::Succeeded)
    {
        let uids = uncounted.succeeded.get_or_insert_default();
        let new = if wishes.indexed {
            pod.index
                .filter(|index| wishes.has_index(*index))
                .is_some_and(|index| tally.completed.insert(index))
        } else if uids.contains(&pod.uid) {
            false
        } else {
            uids.push(pod.uid.clone());
            true
        };
        if new {
            fresh.push((pod.finished.unwrap_or(now), false));
        }
        tally.release.push(pod);
    }
    for pod in finished
        .into_iter()
        .filter(|pod| pod.phase != Phase::Succeeded)
    {
        let verdict = verdict(wishes.spec.pod_failure_policy.as_ref(), pod);
        if let Verdict::FailJob(message) = &verdict {
            tally.fail_job.get_or_insert_with(|| message.clone());
        }
        let uids = uncounted.failed.get_or_insert_default();
        let countable = !wishes.indexed || pod.index.is_some_and(|index| wishes.has_index(index));
        if countable && verdict != Verdict::Ignore && !uids.contains(&pod.uid) {
            uids.push(pod.uid.clone());
            fresh.push((pod.finished.unwrap_or(now), true));
        }
        match delay(wishes, &mut tally, pod, &verdict) {
            Some(index) => keep(&mut tally, index, pod, verdict),
            None => tally.release.push(pod),
        }
    }
    release_replaced(&mut tally);
    fresh.sort_unstable();
    for (at, has_failed) in fresh {
        tally.failures = if has_failed {
            tally.failures.failed(at)
        } else {
            Failures::default()
        };
    }

    let length = |list: &Option<Vec<String>>| list.as_ref().map_or(0, |uids| uids.len() as u64);
    let counted = |number: Option<i32>| u64::try_from(number.unwrap_or(0)).unwrap_or(0);
    tally.succeeded = if wishes.indexed {
        tally.completed.len()
    } else {
        counted(status.succeeded) + length(&uncounted.succeeded)
    };
    tally.failed = counted(status.failed) + length(&uncounted.failed);
    for list in [&mut uncounted.succeeded, &mut uncounted.failed] {
        if list.as_ref().is_some_and(Vec::is_empty) {
            *list = None;
        }
    }
    tally
}

/// Whether a pod counts as failed: it has failed, or it is being deleted and
/// the Job replaces pods as soon as they go, or will never report its end.
fn is_failed(pod: &PodFacts, wishes: &Wishes<'_>) -> bool {
    let gives_up = pod.is_terminating() && (!wishes.replace_only_failed || pod.lost);
    pod.phase == Phase::Failed || gives_up
}

/// The index whose count the failed pod must carry on, if any. Fails the
/// index when it has used up its tries.
fn delay(
    wishes: &Wishes<'_>,
    tally: &mut Tally<'_>,
    pod: &PodFacts,
    verdict: &Verdict,
) -> Option<u32> {
    let limit = wishes.backoff_limit_per_index?;
    let index = pod.index.filter(|index| wishes.has_index(*index))?;
    if tally.completed.contains(index) || tally.failed_indexes.contains(index) {
        return None;
    }
    let exhausted = *verdict != Verdict::Ignore && pod.index_failures >= limit;
    if *verdict == Verdict::FailIndex || exhausted {
        tally.failed_indexes.insert(index);
        return None;
    }
    Some(index)
}

/// Keeps the pod with the highest count of its index, releases the other.
fn keep<'a>(tally: &mut Tally<'a>, index: u32, pod: &'a PodFacts, verdict: Verdict) {
    match tally.replace.get(&index) {
        Some((other, _)) if other.tries() > pod.tries() => tally.release.push(pod),
        _ => {
            if let Some((other, _)) = tally.replace.insert(index, (pod, verdict)) {
                tally.release.push(other);
            }
        }
    }
}

/// Releases pods whose index has failed or has an active pod again.
fn release_replaced(tally: &mut Tally<'_>) {
    let active: HashSet<u32> = tally.active.iter().filter_map(|pod| pod.index).collect();
    let over: Vec<u32> = tally
        .replace
        .keys()
        .copied()
        .filter(|index| active.contains(index) || tally.failed_indexes.contains(*index))
        .collect();
    for index in over {
        if let Some((pod, _)) = tally.replace.remove(&index) {
            tally.release.push(pod);
        }
    }
}

/// Indexes as they stand in a status. What cannot be read counts as nothing,
/// so that a damaged status repeats work rather than stops it.
fn read_indexes(text: Option<&str>, wishes: &Wishes<'_>) -> IndexSet {
    match text.unwrap_or_default().parse::<IndexSet>() {
        Ok(set) => set.below(wishes.completions.unwrap_or(0)),
        Err(error) => {
            tracing::warn!(%error, "the indexes in a Job's status cannot be read");
            IndexSet::default()
        }
    }
}
