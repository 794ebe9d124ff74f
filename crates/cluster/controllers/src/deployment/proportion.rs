//! Scales a Deployment. During a rollout, each ReplicaSet gets a proportional
//! share.

use super::{
    draft::{Draft, by_age},
    facts::{Deployment, ReplicaSet},
    revision,
};

/// Scales the ReplicaSets to the size of the Deployment.
pub(super) fn scale(draft: &mut Draft<'_>) {
    let deployment = draft.deployment;
    let spec = &deployment.spec;
    let new = draft.new.as_ref();
    let is_saturated = new.is_some_and(|new| {
        new.replicas == spec.replicas
            && revision::desired(new) == Some(spec.replicas)
            && new.counts.available_replicas == spec.replicas
    });
    if let Some(only) = only_active(draft) {
        if only.replicas != spec.replicas {
            Draft::scale(deployment, only, spec.replicas);
        }
    } else if is_saturated {
        for old in draft.old.iter_mut().filter(|set| set.replicas > 0) {
            Draft::scale(deployment, old, 0);
        }
    } else if !spec.strategy.is_recreate() {
        distribute(draft);
    }
}

/// Returns the only ReplicaSet that should have pods, or the newest one if none
/// should have any.
fn only_active<'a>(draft: &'a mut Draft<'_>) -> Option<&'a mut ReplicaSet> {
    match draft.all().iter().filter(|set| set.replicas > 0).count() {
        0 if draft.new.is_some() => draft.new.as_mut(),
        0 => draft.old.last_mut(),
        1 => {
            let mut sets = draft.old.iter_mut().chain(&mut draft.new);
            sets.find(|set| set.replicas > 0)
        }
        _ => None,
    }
}

/// Distributes the pods to add or remove among all ReplicaSets with pods in
/// proportion to their sizes. The largest one gets the remainder.
fn distribute(draft: &mut Draft<'_>) {
    let deployment = draft.deployment;
    let allowed = match deployment.spec.replicas {
        0 => 0,
        _ => deployment.spec.most(),
    };
    let sets = draft.old.iter_mut().chain(&mut draft.new);
    let mut sets: Vec<&mut ReplicaSet> = sets.filter(|set| set.replicas > 0).collect();
    let to_add = allowed - sets.iter().map(|set| set.replicas).sum::<i64>();
    // The largest come first. Among equal ones, the newest grow first and the
    // oldest shrink first.
    sets.sort_by(|a, b| {
        let age = by_age(a, b);
        let age = if to_add > 0 { age.reverse() } else { age };
        b.replicas.cmp(&a.replicas).then(age)
    });
    let mut added = 0;
    let mut sizes = Vec::new();
    for set in &sets {
        let fraction = fraction(deployment, set);
        let left = to_add - added;
        let part = match to_add {
            0 => 0,
            1.. => fraction.min(left),
            _ => fraction.max(left),
        };
        added += part;
        sizes.push(set.replicas + part);
    }
    if let Some(first) = sizes.first_mut() {
        *first = (*first + to_add - added).max(0);
    }
    for (set, size) in sets.into_iter().zip(sizes) {
        Draft::scale(deployment, set, size);
    }
}

/// Returns by how many pods a ReplicaSet would grow or shrink with the Deployment.
fn fraction(deployment: &Deployment, set: &ReplicaSet) -> i64 {
    if deployment.spec.replicas == 0 {
        return -set.replicas;
    }
    let before = revision::most(set).unwrap_or(deployment.status.replicas);
    if before == 0 {
        return 0;
    }
    let product = set.replicas * deployment.spec.most();
    // Rounds half up. No value is negative.
    (2 * product + before).div_euclid(2 * before) - set.replicas
}
