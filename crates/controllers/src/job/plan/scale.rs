//! How many pods are made or deleted, and which.

use std::{cmp::Reverse, collections::HashSet, time::Duration};

use jiff::Timestamp;

use super::{BackoffLimits, NewPod, Phase, Plan, PodFacts, Removal, Tally, Verdict, Wishes};

/// Most pods made or deleted at a time, as in Kubernetes.
const LARGEST_STEP: u64 = 500;

pub(super) fn removals(pods: &[&PodFacts], uncounted: bool) -> Vec<Removal> {
    let removal = |pod: &&PodFacts| Removal {
        pod: (*pod).clone(),
        uncounted,
    };
    pods.iter()
        .take(usize::try_from(LARGEST_STEP).unwrap_or(usize::MAX))
        .map(removal)
        .collect()
}

/// Makes or deletes pods until as many are active as are wanted.
pub(super) fn scale(
    plan: &mut Plan,
    wishes: &Wishes<'_>,
    tally: &Tally<'_>,
    limits: BackoffLimits,
    now: Timestamp,
) {
    let active = tally.active.len() as u64;
    let wanted = match wishes.completions {
        Some(completions) => {
            let over = tally.succeeded + tally.failed_indexes.len();
            u64::from(completions)
                .saturating_sub(over)
                .min(wishes.parallelism)
        }
        None if tally.succeeded > 0 => active.min(wishes.parallelism),
        None => wishes.parallelism,
    };
    let surplus = surplus(wishes, tally, active.saturating_sub(wanted));
    if !surplus.is_empty() {
        plan.delete = removals(&surplus, true);
        return;
    }
    let going = if wishes.replace_only_failed {
        tally.terminating.len() as u64
    } else {
        0
    };
    let missing = wanted.saturating_sub(active + going).min(LARGEST_STEP);
    if missing == 0 {
        return;
    }
    if wishes.backoff_limit_per_index.is_some() {
        create_indexed(plan, wishes, tally, missing, |pod| {
            let failures = pod.tries().saturating_add(1);
            let failures = u32::try_from(failures).unwrap_or(u32::MAX);
            limits.remaining(failures, pod.finished.unwrap_or(now), now)
        });
        return;
    }
    let wait = tally.failures.remaining(limits, now);
    if !wait.is_zero() {
        plan.look_again(wait);
    } else if wishes.indexed {
        create_indexed(plan, wishes, tally, missing, |_| Duration::ZERO);
    } else {
        plan.create = (0..missing).map(|_| NewPod::default()).collect();
    }
}

/// Makes pods for the lowest indexes that need one and need not wait.
fn create_indexed(
    plan: &mut Plan,
    wishes: &Wishes<'_>,
    tally: &Tally<'_>,
    missing: u64,
    wait: impl Fn(&PodFacts) -> Duration,
) {
    let mut taken: HashSet<u32> = tally.active.iter().filter_map(|pod| pod.index).collect();
    if wishes.replace_only_failed {
        taken.extend(tally.terminating.iter().filter_map(|pod| pod.index));
    }
    let mut left = missing;
    let mut next = 0;
    while left > 0 {
        // Whole ranges are skipped at once: a Job may have 2^31 indexes.
        let after = |index| {
            tally
                .failed_indexes
                .next_missing(tally.completed.next_missing(index)?)
        };
        let Some(index) = after(next).filter(|index| wishes.has_index(*index)) else {
            break;
        };
        next = index + 1;
        if tally.completed.contains(index) || taken.contains(&index) {
            continue;
        }
        let mut failures = wishes.backoff_limit_per_index.map(|_| (0, 0));
        if let Some((pod, verdict)) = tally.replace.get(&index) {
            let wait = wait(pod);
            if !wait.is_zero() {
                plan.look_again(wait);
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

/// Active pods that are too many: of Indexed Jobs those without a valid index
/// or with another's, then `excess` of the rest, the least useful first.
fn surplus<'a>(wishes: &Wishes<'_>, tally: &Tally<'a>, excess: u64) -> Vec<&'a PodFacts> {
    let mut pods = tally.active.clone();
    // Least useful first: not started, not ready, youngest.
    pods.sort_by_key(|pod| {
        let running = pod.phase == (Phase::Unfinished { running: true });
        (running, pod.ready, Reverse(pod.created), pod.name.clone())
    });
    let mut chosen: Vec<&PodFacts> = Vec::new();
    if wishes.indexed {
        let mut seen = HashSet::new();
        for pod in pods.iter().rev().copied() {
            let valid = pod.index.filter(|index| wishes.has_index(*index));
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
