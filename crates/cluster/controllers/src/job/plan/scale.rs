//! Decides how many pods to create or delete, and which.

use std::{cmp::Reverse, collections::HashSet, time::Duration};

use jiff::Timestamp;

use super::{BackoffLimits, EffectiveSpec, NewPod, Phase, Plan, PodFacts, Removal, Tally, Verdict};

/// The maximum number of pods to create or delete at a time, as in Kubernetes.
const MAX_STEP: u64 = 500;

pub(super) fn removals(pods: &[&PodFacts], uncounted: bool) -> Vec<Removal> {
    let removal = |pod: &&PodFacts| Removal {
        pod: (*pod).clone(),
        uncounted,
    };
    pods.iter()
        .take(usize::try_from(MAX_STEP).unwrap_or(usize::MAX))
        .map(removal)
        .collect()
}

/// Creates or deletes pods until the desired number is active.
pub(super) fn scale(
    plan: &mut Plan,
    effective: &EffectiveSpec<'_>,
    tally: &Tally<'_>,
    limits: BackoffLimits,
    now: Timestamp,
) {
    let active = tally.active.len() as u64;
    let wanted = match effective.completions {
        Some(completions) => {
            let over = tally.succeeded + tally.failed_indexes.len();
            u64::from(completions)
                .saturating_sub(over)
                .min(effective.parallelism)
        }
        None if tally.succeeded > 0 => active.min(effective.parallelism),
        None => effective.parallelism,
    };
    let surplus = surplus(effective, tally, active.saturating_sub(wanted));
    if !surplus.is_empty() {
        plan.delete = removals(&surplus, true);
        return;
    }
    let terminating = if effective.replace_only_failed {
        tally.terminating.len() as u64
    } else {
        0
    };
    let missing = wanted.saturating_sub(active + terminating).min(MAX_STEP);
    if missing == 0 {
        return;
    }
    if effective.backoff_limit_per_index.is_some() {
        create_indexed(plan, effective, tally, missing, |pod| {
            let failures = pod.tries().saturating_add(1);
            let failures = u32::try_from(failures).unwrap_or(u32::MAX);
            limits.remaining(failures, pod.finished.unwrap_or(now), now)
        });
        return;
    }
    let wait = tally.failures.remaining(limits, now);
    if !wait.is_zero() {
        plan.requeue(wait);
    } else if effective.indexed {
        create_indexed(plan, effective, tally, missing, |_| Duration::ZERO);
    } else {
        plan.create = (0..missing).map(|_| NewPod::default()).collect();
    }
}

/// Creates pods for the lowest indexes that need one and whose backoff has passed.
fn create_indexed(
    plan: &mut Plan,
    effective: &EffectiveSpec<'_>,
    tally: &Tally<'_>,
    missing: u64,
    wait: impl Fn(&PodFacts) -> Duration,
) {
    let mut used_indexes: HashSet<u32> = tally.active.iter().filter_map(|pod| pod.index).collect();
    if effective.replace_only_failed {
        used_indexes.extend(tally.terminating.iter().filter_map(|pod| pod.index));
    }
    let mut left = missing;
    let mut next = 0;
    while left > 0 {
        // Whole ranges are skipped at once, because a Job can have 2^31 indexes.
        let next_free = |index| {
            tally
                .failed_indexes
                .next_missing(tally.completed.next_missing(index)?)
        };
        let Some(index) = next_free(next).filter(|index| effective.has_index(*index)) else {
            break;
        };
        next = index + 1;
        if tally.completed.contains(index) || used_indexes.contains(&index) {
            continue;
        }
        let mut failures = effective.backoff_limit_per_index.map(|_| (0, 0));
        if let Some((pod, verdict)) = tally.replace.get(&index) {
            let wait = wait(pod);
            if !wait.is_zero() {
                plan.requeue(wait);
                continue;
            }
            let ignored = i64::from(*verdict == Verdict::Ignore);
            failures = Some((
                pod.index_failures.saturating_add(1 - ignored),
                pod.index_ignored.saturating_add(ignored),
            ));
        }
        plan.create.push(NewPod {
            index: Some(index),
            failures,
        });
        left -= 1;
    }
}

/// Returns the surplus active pods. In Indexed Jobs, these include pods with an
/// invalid or duplicate index. Then come `excess` of the other pods, in the order
/// of the next comment.
fn surplus<'a>(effective: &EffectiveSpec<'_>, tally: &Tally<'a>, excess: u64) -> Vec<&'a PodFacts> {
    let mut pods = tally.active.clone();
    // Pods that have not started come first, then pods that are not ready, then the
    // youngest.
    pods.sort_by_key(|pod| {
        let running = pod.phase == (Phase::Unfinished { running: true });
        (running, pod.ready, Reverse(pod.created), pod.name.clone())
    });
    let mut chosen: Vec<&PodFacts> = Vec::new();
    if effective.indexed {
        let mut seen = HashSet::new();
        for pod in pods.iter().rev().copied() {
            let valid = pod.index.filter(|index| effective.has_index(*index));
            if !valid.is_some_and(|index| seen.insert(index)) {
                chosen.push(pod);
            }
        }
    }
    let names: HashSet<&str> = chosen.iter().map(|pod| pod.name.as_str()).collect();
    let others = pods
        .iter()
        .copied()
        .filter(|pod| !names.contains(pod.name.as_str()));
    let more = usize::try_from(excess)
        .unwrap_or(usize::MAX)
        .saturating_sub(chosen.len());
    let more: Vec<&PodFacts> = others.take(more).collect();
    chosen.extend(more);
    chosen
}
