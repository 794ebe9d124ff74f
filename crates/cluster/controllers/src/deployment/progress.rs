//! Computes the status and the conditions of a Deployment from the counts of its
//! ReplicaSets.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{
    condition::{self, Condition},
    facts::{Deployment, ReplicaSet},
    status::Status,
};

impl Status {
    /// Returns true if all desired pods are updated and available, and no other pods exist.
    pub(crate) fn is_complete(&self, deployment: &Deployment) -> bool {
        let wanted = deployment.spec.replicas;
        [
            self.updated_replicas,
            self.replicas,
            self.available_replicas,
        ] == [wanted; 3]
            && self.observed_generation >= deployment.generation
    }

    fn progressed_since(&self, old: &Self) -> bool {
        self.updated_replicas > old.updated_replicas
            || self.replicas - self.updated_replicas < old.replicas - old.updated_replicas
            || self.ready_replicas > old.ready_replicas
            || self.available_replicas > old.available_replicas
    }
}

fn sum(sets: &[&ReplicaSet], count: impl Fn(&ReplicaSet) -> i64) -> i64 {
    sets.iter().map(|set| count(set)).sum()
}

/// Computes the counts and the condition Available. Keeps the other conditions.
pub(crate) fn counted(
    deployment: &Deployment,
    sets: &[&ReplicaSet],
    new: Option<&ReplicaSet>,
    conditions: Vec<Condition>,
    now: Timestamp,
) -> Status {
    let available = sum(sets, |set| set.counts.available_replicas);
    let mut status = Status {
        observed_generation: deployment.generation,
        replicas: sum(sets, |set| set.counts.replicas),
        updated_replicas: new.map_or(0, |set| set.counts.replicas),
        ready_replicas: sum(sets, |set| set.counts.ready_replicas),
        available_replicas: available,
        unavailable_replicas: (sum(sets, |set| set.replicas) - available).max(0),
        terminating_replicas: terminating(sets),
        collision_count: deployment.status.collision_count,
        conditions,
    };
    let (state, reason, message) = if available >= deployment.spec.fewest() {
        (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        )
    } else {
        (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    };
    let condition = Condition::new(condition::AVAILABLE, state, reason, message.into(), now);
    condition::set(&mut status.conditions, condition);
    status
}

/// Returns the number of pods in deletion, or `None` if a ReplicaSet has not
/// counted them.
fn terminating(sets: &[&ReplicaSet]) -> Option<i64> {
    let counted = sets.iter().filter(|set| {
        set.counts.observed_generation != 0 || set.counts.terminating_replicas.is_some()
    });
    counted.map(|set| set.counts.terminating_replicas).sum()
}

/// Like [`counted`], but for a rollout: also computes the conditions Progressing
/// and ReplicaFailure.
pub(crate) fn rolled(
    deployment: &Deployment,
    sets: &[&ReplicaSet],
    new: Option<&ReplicaSet>,
    conditions: Vec<Condition>,
    now: Timestamp,
) -> Status {
    let mut status = counted(deployment, sets, new, conditions, now);
    let subject = match new {
        Some(set) => format!("ReplicaSet \"{}\"", set.key.name),
        None => format!("Deployment \"{}\"", deployment.key.name),
    };
    let current = condition::find(&status.conditions, condition::PROGRESSING).cloned();
    let reason = current.as_ref().map(|c| c.reason.as_str());
    let was_complete =
        status.replicas == status.updated_replicas && reason == Some(condition::NEW_SET_AVAILABLE);
    let condition = |state: &str, reason: &str, what: &str| {
        let message = format!("{subject} {what}");
        Condition::new(condition::PROGRESSING, state, reason, message, now)
    };
    match deployment.spec.deadline() {
        None => condition::remove(&mut status.conditions, condition::PROGRESSING),
        Some(_) if was_complete => {}
        Some(_) if status.is_complete(deployment) => {
            let what = "has successfully progressed.";
            let done = condition("True", condition::NEW_SET_AVAILABLE, what);
            condition::set(&mut status.conditions, done);
        }
        Some(_) if status.progressed_since(&deployment.status) => {
            let mut progressing = condition("True", condition::SET_UPDATED, "is progressing.");
            // The deadline counts from the update time.
            if let Some(current) = current.filter(|current| current.status == "True") {
                progressing.last_transition_time = current.last_transition_time;
            }
            condition::remove(&mut status.conditions, condition::PROGRESSING);
            condition::set(&mut status.conditions, progressing);
        }
        Some(seconds) if timed_out(current.as_ref(), seconds, now) => {
            let failed = condition("False", condition::TIMED_OUT, "has timed out progressing.");
            condition::set(&mut status.conditions, failed);
        }
        Some(_) => {}
    }
    match failure(sets, new) {
        Some(failure) => condition::set(&mut status.conditions, failure),
        None => condition::remove(&mut status.conditions, condition::REPLICA_FAILURE),
    }
    status
}

fn deadline(condition: &Condition, seconds: i64) -> Option<Timestamp> {
    let wait = SignedDuration::from_secs(seconds);
    condition.updated()?.checked_add(wait).ok()
}

fn timed_out(current: Option<&Condition>, seconds: i64, now: Timestamp) -> bool {
    let Some(current) = current else {
        return false;
    };
    match current.reason.as_str() {
        condition::NEW_SET_AVAILABLE => false,
        condition::TIMED_OUT => true,
        _ => deadline(current, seconds).is_some_and(|deadline| deadline < now),
    }
}

/// Returns why pods could not be created. The new ReplicaSet takes precedence.
fn failure(sets: &[&ReplicaSet], new: Option<&ReplicaSet>) -> Option<Condition> {
    let mut sets = new.into_iter().chain(sets.iter().copied());
    let failure =
        sets.find_map(|set| condition::find(&set.counts.conditions, condition::REPLICA_FAILURE));
    failure.map(|failure| Condition {
        last_update_time: failure.last_transition_time.clone(),
        ..failure.clone()
    })
}

/// Returns the time until a rollout without progress is checked again.
pub(crate) fn next_check(
    deployment: &Deployment,
    status: &Status,
    now: Timestamp,
) -> Option<Duration> {
    let current = condition::find(&status.conditions, condition::PROGRESSING)?;
    let seconds = deployment.spec.deadline()?;
    if status.is_complete(deployment) || current.reason == condition::TIMED_OUT {
        return None;
    }
    let left = deadline(current, seconds)?.duration_since(now);
    // Times have a resolution of one second, so one second is added.
    Some(Duration::try_from(left).unwrap_or_default() + Duration::from_secs(1))
}
