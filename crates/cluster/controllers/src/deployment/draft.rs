//! The ReplicaSets and conditions of a Deployment while a decision is made.

use jiff::Timestamp;

use super::{
    condition::{self, Condition},
    facts::{Deployment, ReplicaSet},
    hash::is_same,
    revision,
};

/// The new ReplicaSet, the old ones from oldest to newest, and the conditions. They
/// are changed in place, and finally compared with the observed state.
pub(super) struct Draft<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) new: Option<ReplicaSet>,
    pub(super) old: Vec<ReplicaSet>,
    pub(super) conditions: Vec<Condition>,
    pub(super) now: Timestamp,
}

impl<'a> Draft<'a> {
    /// The new ReplicaSet is the one whose template equals the Deployment's. If
    /// there are several, it is the oldest.
    pub(super) fn new(
        deployment: &'a Deployment,
        mut old: Vec<ReplicaSet>,
        now: Timestamp,
    ) -> Self {
        old.sort_by(by_age);
        let mut sets = old.iter();
        let new = sets.position(|set| is_same(&set.template, &deployment.spec.template));
        Self {
            deployment,
            new: new.map(|index| old.remove(index)),
            old,
            conditions: deployment.status.conditions.clone(),
            now,
        }
    }

    /// Returns all ReplicaSets.
    pub(super) fn all(&self) -> Vec<&ReplicaSet> {
        self.old.iter().chain(&self.new).collect()
    }

    /// Scales a ReplicaSet and records the size of the Deployment. Returns true if the ReplicaSet's
    /// size changed.
    pub(super) fn scale(deployment: &Deployment, set: &mut ReplicaSet, replicas: i64) -> bool {
        let changed = set.replicas != replicas;
        set.replicas = replicas;
        revision::note_sizes(&mut set.annotations, deployment);
        changed
    }

    /// Records the start or the end of a pause, so that the deadline does not count the paused
    /// time.
    pub(super) fn note_pause(&mut self) {
        let spec = &self.deployment.spec;
        let known = condition::find(&self.conditions, condition::PROGRESSING);
        let reason = known.map(|known| known.reason.as_str());
        if spec.deadline().is_none() || reason == Some(condition::TIMED_OUT) {
            return;
        }
        let (reason, message) = match (spec.paused, reason == Some(condition::PAUSED)) {
            (true, false) => (condition::PAUSED, "Deployment is paused"),
            (false, true) => (condition::RESUMED, "Deployment is resumed"),
            _ => return,
        };
        let kind = condition::PROGRESSING;
        let new = Condition::new(kind, "Unknown", reason, message.to_owned(), self.now);
        condition::set(&mut self.conditions, new);
    }

    /// Sets the revision and the inherited annotations of the new ReplicaSet.
    /// Returns the Deployment's revision.
    pub(super) fn note_revision(&mut self) -> Option<String> {
        let revision = revision::highest(&self.old) + 1;
        let set = self.new.as_mut()?;
        revision::note_revision(&mut set.annotations, self.deployment, revision);
        set.min_ready_seconds = self.deployment.spec.min_ready_seconds;
        let known = condition::find(&self.conditions, condition::PROGRESSING);
        if self.deployment.spec.deadline().is_some() && known.is_none() {
            let message = format!("Found new replica set \"{}\"", set.key.name);
            let (kind, reason) = (condition::PROGRESSING, condition::FOUND_NEW_SET);
            let new = Condition::new(kind, "True", reason, message, self.now);
            condition::set(&mut self.conditions, new);
        }
        set.annotations.get(revision::REVISION).cloned()
    }

    /// Returns true if the ReplicaSets were scaled for a different size of the Deployment.
    pub(super) fn is_scaled(&self) -> bool {
        let sets = self.all().into_iter().filter(|set| set.replicas > 0);
        let mut desired = sets.filter_map(revision::desired);
        desired.any(|desired| desired != self.deployment.spec.replicas)
    }

    /// Returns the old ReplicaSets without pods beyond the history limit.
    pub(super) fn surplus(&self) -> Vec<ReplicaSet> {
        let Some(limit) = self.deployment.spec.history() else {
            return Vec::new();
        };
        let mut sets: Vec<&ReplicaSet> = self.old.iter().filter(|set| !set.deleting).collect();
        let surplus = sets.len().saturating_sub(limit);
        sets.sort_by(
            |a, b| match (revision::revision(a), revision::revision(b)) {
                (Some(first), Some(second)) if first != second => first.cmp(&second),
                _ => by_age(a, b),
            },
        );
        let empty = sets.into_iter().take(surplus).filter(|set| {
            let observed = set.counts.observed_generation >= set.generation;
            observed && set.counts.replicas == 0 && set.replicas == 0
        });
        empty.cloned().collect()
    }
}

/// Sorts the oldest first.
pub(super) fn by_age(a: &ReplicaSet, b: &ReplicaSet) -> std::cmp::Ordering {
    (a.created, &a.key.name).cmp(&(b.created, &b.key.name))
}
