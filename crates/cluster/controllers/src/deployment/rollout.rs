//! The steps of a rollout for the strategies `RollingUpdate` and `Recreate`.

use super::{draft::Draft, facts::ReplicaSet};

/// Returns the current target size of the new ReplicaSet, which has at least one
/// pod.
pub(super) fn growth(draft: &Draft<'_>, has: i64) -> i64 {
    let spec = &draft.deployment.spec;
    if spec.strategy.is_recreate() {
        return spec.replicas;
    }
    let total: i64 = draft.all().iter().map(|set| set.replicas).sum();
    let room = (spec.most() - total).max(0);
    if room == 0 {
        has
    } else {
        has + room.min(spec.replicas - has)
    }
}

/// Recreate: scales all old ReplicaSets to zero.
pub(super) fn stop_old(draft: &mut Draft<'_>) -> bool {
    let mut scaled = false;
    for set in draft.old.iter_mut().filter(|set| set.replicas > 0) {
        scaled |= Draft::scale(draft.deployment, set, 0);
    }
    scaled
}

/// Recreate: returns true if pods of old ReplicaSets have not ended. `running` has the UIDs of the
/// ReplicaSets with such pods.
pub(super) fn old_runs(draft: &Draft<'_>, running: &[String]) -> bool {
    let mut old = draft.old.iter();
    old.any(|set| set.counts.replicas > 0 || running.contains(&set.uid))
}

/// Does one step of a rollout: scales up if possible, otherwise down. Returns true if there was a
/// step to do.
pub(super) fn roll(draft: &mut Draft<'_>) -> bool {
    let deployment = draft.deployment;
    let Some(has) = draft.new.as_ref().map(|new| new.replicas) else {
        return false;
    };
    let wanted = deployment.spec.replicas;
    let size = if has >= wanted {
        wanted
    } else {
        growth(draft, has)
    };
    if let Some(new) = draft.new.as_mut().filter(|new| new.replicas != size) {
        return Draft::scale(deployment, new, size);
    }
    !deployment.spec.strategy.is_recreate() && shrink(draft)
}

/// Scales old ReplicaSets down by as many pods as the bounds allow: unavailable
/// pods first, then the pods of the oldest ReplicaSets.
fn shrink(draft: &mut Draft<'_>) -> bool {
    let (deployment, fewest) = (draft.deployment, draft.deployment.spec.fewest());
    let total: i64 = draft.all().iter().map(|set| set.replicas).sum();
    let available: i64 = draft.all().into_iter().map(available).sum();
    let missing = |set: &ReplicaSet| set.replicas - self::available(set);
    let mut room = total - fewest - draft.new.as_ref().map_or(0, missing);
    if room <= 0 {
        return false;
    }
    let mut scaled = false;
    let mut shrink = |set: &mut ReplicaSet, room: &mut i64, most: i64| {
        let count = most.min(*room).max(0);
        if count > 0 {
            *room -= count;
            scaled |= Draft::scale(deployment, set, set.replicas - count);
        }
    };
    for set in draft.old.iter_mut().filter(|set| set.replicas > 0) {
        let unhealthy = missing(set);
        shrink(set, &mut room, unhealthy);
    }
    let mut room = available - fewest;
    for set in draft.old.iter_mut().filter(|set| set.replicas > 0) {
        let all = set.replicas;
        shrink(set, &mut room, all);
    }
    scaled
}

/// Returns the available pods that will stay. A ReplicaSet that was scaled down may
/// still count pods that it is about to delete.
fn available(set: &ReplicaSet) -> i64 {
    set.counts.available_replicas.min(set.replicas)
}
