//! Counts a Job's pods: active ones, newly finished ones, and those already
//! counted.
//!
//! Counting a finished pod takes three steps, so that a crash between them loses
//! nothing: the pod's UID is added to `uncountedTerminatedPods`, its finalizer is
//! removed, and then the UID is replaced by an increment of `succeeded` or
//! `failed`. Indexed Jobs need no UIDs for successes, because `completedIndexes` is
//! a set.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobStatus;

use super::{
    backoff::Failures,
    facts::{Phase, PodFacts},
    failure_policy::{Verdict, verdict},
    indexes::IndexSet,
    spec::EffectiveSpec,
};

/// The counts of a Job's pods.
#[derive(Debug, Default)]
pub(crate) struct Tally<'a> {
    /// The pods that have not finished and are not being deleted.
    pub(crate) active: Vec<&'a PodFacts>,
    /// The pods in deletion that have not finished.
    pub(crate) terminating: Vec<&'a PodFacts>,
    /// The number of active pods that are ready.
    pub(crate) ready: usize,
    /// The completed indexes, including new ones.
    pub(crate) completed: IndexSet,
    /// The failed indexes, including new ones.
    pub(crate) failed_indexes: IndexSet,
    /// The number of successes, including uncounted ones.
    pub(crate) succeeded: u64,
    /// The number of failures, including uncounted ones.
    pub(crate) failed: u64,
    /// The pods that count as soon as the status is stored. Their finalizer can
    /// then be removed.
    pub(crate) release: Vec<&'a PodFacts>,
    /// By index, the failed pods of indexes that will be retried. They keep the
    /// finalizer until they are replaced, because they hold the index's failure
    /// count.
    pub(crate) replace: BTreeMap<u32, (&'a PodFacts, Verdict)>,
    /// The reason if the failure policy fails the Job.
    pub(crate) fail_job: Option<String>,
    /// The consecutive failures, including new ones.
    pub(crate) failures: Failures,
}

/// Replaces the UIDs of pods without the finalizer by increments of the counters.
pub(crate) fn settle(status: &mut JobStatus, effective: &EffectiveSpec<'_>, pods: &[&PodFacts]) {
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
    if !effective.indexed && succeeded > 0 {
        status.succeeded = Some(status.succeeded.unwrap_or(0).saturating_add(succeeded));
    }
    if failed > 0 {
        status.failed = Some(status.failed.unwrap_or(0).saturating_add(failed));
    }
}

/// Counts the pods, and adds the newly finished ones to the lists of uncounted UIDs
/// in the status.
pub(crate) fn tally<'a>(
    status: &mut JobStatus,
    effective: &EffectiveSpec<'_>,
    pods: &[&'a PodFacts],
    failures: Failures,
    now: Timestamp,
) -> Tally<'a> {
    let mut tally = Tally {
        failures,
        ..Tally::default()
    };
    if effective.indexed {
        tally.completed = read_indexes(status.completed_indexes.as_deref(), effective);
        tally.failed_indexes = read_indexes(status.failed_indexes.as_deref(), effective);
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
        if pod.tracked && (pod.phase == Phase::Succeeded || is_failed(pod, effective)) {
            finished.push(pod);
        }
    }
    finished.sort_by_key(|pod| (pod.finished.unwrap_or(now), &pod.name));

    // The end of each newly counted pod, and true if the pod failed.
    let mut newly_finished: Vec<(Timestamp, bool)> = Vec::new();
    // Successes come first, because an index with a success cannot fail.
    for pod in finished
        .iter()
        .copied()
        .filter(|pod| pod.phase == Phase::Succeeded)
    {
        let uids = uncounted.succeeded.get_or_insert_default();
        let new = if effective.indexed {
            pod.index
                .filter(|index| effective.has_index(*index))
                .is_some_and(|index| tally.completed.insert(index))
        } else if uids.contains(&pod.uid) {
            false
        } else {
            uids.push(pod.uid.clone());
            true
        };
        if new {
            newly_finished.push((pod.finished.unwrap_or(now), false));
        }
        tally.release.push(pod);
    }
    for pod in finished
        .into_iter()
        .filter(|pod| pod.phase != Phase::Succeeded)
    {
        let verdict = verdict(effective.spec.pod_failure_policy.as_ref(), pod);
        if let Verdict::FailJob(message) = &verdict {
            tally.fail_job.get_or_insert_with(|| message.clone());
        }
        let uids = uncounted.failed.get_or_insert_default();
        let countable =
            !effective.indexed || pod.index.is_some_and(|index| effective.has_index(index));
        if countable && verdict != Verdict::Ignore && !uids.contains(&pod.uid) {
            uids.push(pod.uid.clone());
            newly_finished.push((pod.finished.unwrap_or(now), true));
        }
        match index_to_keep(effective, &mut tally, pod, &verdict) {
            Some(index) => keep_for_index(&mut tally, index, pod, verdict),
            None => tally.release.push(pod),
        }
    }
    release_replaced(&mut tally);
    newly_finished.sort_unstable();
    for (at, has_failed) in newly_finished {
        tally.failures = if has_failed {
            tally.failures.failed(at)
        } else {
            Failures::default()
        };
    }

    let length = |list: &Option<Vec<String>>| list.as_ref().map_or(0, |uids| uids.len() as u64);
    let counted = |number: Option<i32>| u64::try_from(number.unwrap_or(0)).unwrap_or(0);
    tally.succeeded = if effective.indexed {
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

/// Returns true if a pod counts as failed: it has failed, or it is being deleted and either the Job
/// replaces pods immediately or no node will report the pod's end.
fn is_failed(pod: &PodFacts, effective: &EffectiveSpec<'_>) -> bool {
    let gives_up = pod.is_terminating() && (!effective.replace_only_failed || pod.lost);
    pod.phase == Phase::Failed || gives_up
}

/// Returns the index whose failure count this failed pod must keep, if any. Fails
/// the index if its failures exceed the limit.
fn index_to_keep(
    effective: &EffectiveSpec<'_>,
    tally: &mut Tally<'_>,
    pod: &PodFacts,
    verdict: &Verdict,
) -> Option<u32> {
    let limit = effective.backoff_limit_per_index?;
    let index = pod.index.filter(|index| effective.has_index(*index))?;
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

/// Keeps the pod with the highest failure count of its index, and releases the
/// other.
fn keep_for_index<'a>(tally: &mut Tally<'a>, index: u32, pod: &'a PodFacts, verdict: Verdict) {
    match tally.replace.get(&index) {
        Some((other, _)) if other.tries() > pod.tries() => tally.release.push(pod),
        _ => {
            if let Some((other, _)) = tally.replace.insert(index, (pod, verdict)) {
                tally.release.push(other);
            }
        }
    }
}

/// Releases the pods whose index has failed or has an active pod again.
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

/// Reads the indexes in a status. Invalid indexes count as none, so that an invalid
/// status repeats work instead of stopping it.
fn read_indexes(text: Option<&str>, effective: &EffectiveSpec<'_>) -> IndexSet {
    match text.unwrap_or_default().parse::<IndexSet>() {
        Ok(set) => set.below(effective.completions.unwrap_or(0)),
        Err(error) => {
            tracing::warn!(%error, "cannot read the indexes in a Job's status");
            IndexSet::default()
        }
    }
}
