//! Decides which pods a StatefulSet creates, deletes and changes next.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    action::{Action, Observed},
    claims::{Member, is_current, is_stale},
    counts,
    facts::StatefulSet,
    identity::{claims, has_identity, has_storage, ordinal, pod_name},
    status::Status,
    update,
};
use crate::{
    pod_facts::{Phase, PodFacts},
    replicas::BURST,
};

/// The next changes of a set.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// The phases of the changes. The changes in a phase are independent of each other. A phase
    /// starts after all changes of the previous phases succeeded.
    pub(super) phases: Vec<Vec<Action>>,
    /// The status before the changes.
    pub(super) status: Status,
}

/// Decides the next changes. In a set with the policy OrderedReady, at most one pod is created,
/// deleted, or not available at a time.
pub(super) fn plan(seen: &Observed<'_>) -> Plan {
    let status = counts::status(
        seen.set,
        seen.pods,
        seen.revisions,
        seen.collisions,
        seen.now,
    );
    let mut phases = Vec::new();
    if !seen.set.meta.deleting {
        act(seen, &mut phases);
    }
    phases.retain(|phase: &Vec<Action>| !phase.is_empty());
    Plan { phases, status }
}

fn act(seen: &Observed<'_>, phases: &mut Vec<Vec<Action>>) {
    let ordered = !seen.set.spec.is_parallel();
    let (mut desired, mut condemned) = (BTreeMap::new(), BTreeMap::new());
    for pod in seen.pods {
        if let Some(ordinal) = ordinal(pod) {
            if seen.set.spec.has_ordinal(ordinal) {
                desired.insert(ordinal, pod.clone());
            } else {
                condemned.insert(ordinal, pod.clone());
            }
        }
    }
    let (actions, stopped) = fill(seen, &desired);
    phases.push(actions);
    if stopped {
        return;
    }
    let retain = condemned
        .values()
        .filter(|pod| !has_current_claims(seen, pod));
    phases.push(retain.cloned().map(Action::Retain).collect());
    if ordered && !condemned.is_empty() {
        phases.push(shrink(seen, &condemned).into_iter().collect());
        return;
    }
    let surplus = condemned.values().rev();
    let surplus = surplus.filter(|pod| !pod.deleting).take(BURST);
    phases.push(surplus.cloned().map(Action::Delete).collect());
    if seen.set.spec.rolls_out() {
        phases.push(update::update(seen, &desired));
    }
}

/// Handles the desired pods from the lowest ordinal. Returns true if the set must wait.
fn fill(seen: &Observed<'_>, desired: &BTreeMap<u32, Arc<PodFacts>>) -> (Vec<Action>, bool) {
    let spec = &seen.set.spec;
    let ordered = !spec.is_parallel();
    let (mut actions, mut created) = (Vec::new(), 0);
    let start = spec.start();
    for ordinal in start..start.saturating_add(spec.replicas) {
        let Some(pod) = desired.get(&ordinal) else {
            if created == BURST || has_stale_claim(seen, ordinal) {
                if ordered {
                    return (actions, true);
                }
                if created == BURST {
                    break;
                }
                continue;
            }
            created += 1;
            actions.push(Action::Create {
                ordinal,
                old_revision: gets_old_revision(seen.set, ordinal),
            });
            if ordered {
                return (actions, true);
            }
            continue;
        };
        if pod.has_ended() {
            if !pod.deleting {
                actions.push(Action::Delete(pod.clone()));
            }
            if ordered {
                return (actions, true);
            }
            continue;
        }
        let claims_current = has_current_claims(seen, pod);
        if pod.phase == Phase::Pending && !(claims_current && has_claims(seen, pod)) {
            actions.push(Action::Claims(pod.clone()));
        }
        let available = pod.phase == Phase::Running
            && !pod.deleting
            && pod.is_available(spec.min_ready_seconds, seen.now);
        if ordered && !available {
            return (actions, true);
        }
        if !(has_identity(pod) && has_storage(seen.set, pod) && claims_current) {
            actions.push(Action::Repair(pod.clone()));
        }
    }
    (actions, false)
}

/// Returns the next pod to delete. This is the pod with the highest surplus ordinal, after all
/// others are available.
fn shrink(seen: &Observed<'_>, condemned: &BTreeMap<u32, Arc<PodFacts>>) -> Option<Action> {
    let seconds = seen.set.spec.min_ready_seconds;
    let available = |pod: &PodFacts| pod.is_available(seconds, seen.now) && !pod.deleting;
    let first_unavailable = condemned.values().find(|pod| !available(pod));
    let last = condemned.values().next_back()?;
    if last.deleting {
        return None;
    }
    let healthy = last.phase == Phase::Running && available(last);
    let next = healthy || first_unavailable.is_some_and(|first| first.uid == last.uid);
    next.then(|| Action::Delete(last.clone()))
}

/// Returns true if a pod that is created during an update gets the revision before the update.
fn gets_old_revision(set: &StatefulSet, ordinal: u32) -> bool {
    let index = i64::from(ordinal) - i64::from(set.spec.start());
    match set.spec.partition() {
        Some(partition) => index < i64::from(partition),
        None => set.spec.rolls_out() && index < set.status.current_replicas,
    }
}

fn has_stale_claim(seen: &Observed<'_>, ordinal: u32) -> bool {
    let name = pod_name(seen.set, ordinal);
    let known = claims(seen.set, ordinal).into_iter();
    let mut known = known.filter_map(|claim| (seen.claim)(&claim.name));
    known.any(|claim| is_stale(seen.set, &claim, Member::not_created(&name)))
}

fn has_claims(seen: &Observed<'_>, pod: &PodFacts) -> bool {
    let claims = ordinal(pod).map(|ordinal| claims(seen.set, ordinal));
    let mut claims = claims.into_iter().flatten();
    claims.all(|claim| (seen.claim)(&claim.name).is_some())
}

fn has_current_claims(seen: &Observed<'_>, pod: &PodFacts) -> bool {
    let claims = ordinal(pod).map(|ordinal| claims(seen.set, ordinal));
    let known = claims.into_iter().flatten();
    let mut known = known.filter_map(|claim| (seen.claim)(&claim.name));
    known.all(|claim| is_current(seen.set, &claim, Member::of(seen.set, pod)))
}
