//! What to do about a Deployment: from facts to actions.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    condition::{self, Condition},
    facts::{Deployment, ReplicaSet},
    hash::{hash, is_same, labelled_selector, labelled_template},
    proportion, revision, rollout,
    status::{self, Status},
};

/// All that is known.
pub(crate) struct Observed<'a> {
    /// The Deployment.
    pub(crate) deployment: &'a Deployment,
    /// Its ReplicaSets.
    pub(crate) sets: Vec<ReplicaSet>,
    /// Uids of those that have pods which have not ended.
    pub(crate) running: &'a [String],
    /// The present.
    pub(crate) now: Timestamp,
}

/// What to do, in this order.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// ReplicaSets to change: as they are, and as they should be.
    pub(crate) update: Vec<(ReplicaSet, ReplicaSet)>,
    /// A ReplicaSet to create. There is nothing else to do then.
    pub(crate) create: Option<NewSet>,
    /// ReplicaSets to delete.
    pub(crate) delete: Vec<ReplicaSet>,
    /// The revision of the Deployment, if it is another.
    pub(crate) revision: Option<String>,
    /// The status, if it is another.
    pub(crate) status: Option<Status>,
    /// When to look again, if nothing changes.
    pub(crate) again: Option<Duration>,
}

/// A ReplicaSet to create.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewSet {
    pub(crate) name: String,
    pub(crate) replicas: i64,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) selector: Value,
    pub(crate) template: Value,
    pub(crate) revision: String,
}

/// The new ReplicaSet, the old ones from the oldest on, and the conditions:
/// changed in place, and compared with what was observed in the end.
pub(super) struct Draft<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) new: Option<ReplicaSet>,
    pub(super) old: Vec<ReplicaSet>,
    pub(super) conditions: Vec<Condition>,
    pub(super) now: Timestamp,
}

impl<'a> Draft<'a> {
    /// The ReplicaSet whose template is that of the Deployment is the new one;
    /// of several, the oldest.
    fn new(observed: &mut Observed<'a>) -> Self {
        let deployment = observed.deployment;
        let mut old = std::mem::take(&mut observed.sets);
        old.sort_by(by_age);
        let mut sets = old.iter();
        let new = sets.position(|set| is_same(&set.template, &deployment.spec.template));
        Self {
            deployment,
            new: new.map(|index| old.remove(index)),
            old,
            conditions: deployment.status.conditions.clone(),
            now: observed.now,
        }
    }

    /// All ReplicaSets.
    pub(super) fn all(&self) -> Vec<&ReplicaSet> {
        self.old.iter().chain(&self.new).collect()
    }

    /// Scales a ReplicaSet, and notes the size of the Deployment. Returns
    /// whether its size has changed.
    pub(super) fn scale(deployment: &Deployment, set: &mut ReplicaSet, replicas: i64) -> bool {
        let changed = set.replicas != replicas;
        set.replicas = replicas;
        revision::note_sizes(&mut set.annotations, deployment);
        changed
    }

    /// Says whether the Deployment is paused, so that the time does not count
    /// for its deadline.
    fn note_pause(&mut self) {
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

    /// Gives the new ReplicaSet its revision and what it inherits. Returns the
    /// revision of the Deployment.
    fn note_revision(&mut self) -> Option<String> {
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

    fn is_scaled(&self) -> bool {
        let sets = self.all().into_iter().filter(|set| set.replicas > 0);
        let mut desired = sets.filter_map(revision::desired);
        desired.any(|desired| desired != self.deployment.spec.replicas)
    }

    /// The ReplicaSet for the template.
    fn create(&self) -> NewSet {
        let (deployment, spec) = (self.deployment, &self.deployment.spec);
        let hash = hash(&spec.template, deployment.status.collision_count);
        let revision = revision::highest(&self.old) + 1;
        let mut annotations = BTreeMap::new();
        revision::note_revision(&mut annotations, deployment, revision);
        revision::note_sizes(&mut annotations, deployment);
        let longest = 253 - 1 - hash.len();
        let name: String = deployment.key.name.chars().take(longest).collect();
        NewSet {
            name: format!("{name}-{hash}"),
            replicas: rollout::growth(self, 0),
            annotations,
            selector: labelled_selector(&spec.selector, &hash),
            template: labelled_template(&spec.template, &hash),
            revision: revision.to_string(),
        }
    }

    /// Old ReplicaSets beyond the limit that have no pods.
    fn surplus(&self) -> Vec<ReplicaSet> {
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

fn by_age(a: &ReplicaSet, b: &ReplicaSet) -> std::cmp::Ordering {
    (a.created, &a.key.name).cmp(&(b.created, &b.key.name))
}

/// Decides.
pub(crate) fn plan(mut observed: Observed<'_>) -> Plan {
    let before = observed.sets.clone();
    let deployment = observed.deployment;
    let mut draft = Draft::new(&mut observed);
    let mut plan = Plan::default();
    if !deployment.deleting {
        draft.note_pause();
    }
    let revision = draft.note_revision();
    plan.revision =
        revision.filter(|new| deployment.annotations.get(revision::REVISION) != Some(new));
    let mut rolling = false;
    if deployment.deleting {
        // Only the status is kept up to date.
    } else if deployment.spec.paused || draft.is_scaled() {
        proportion::scale(&mut draft);
        if deployment.spec.paused {
            plan.delete = draft.surplus();
        }
    } else {
        rolling = true;
        let recreate = deployment.spec.strategy.is_recreate();
        let mut busy = recreate && rollout::stop_old(&mut draft);
        busy = busy || recreate && rollout::old_runs(&draft, observed.running);
        if !busy && draft.new.is_none() {
            plan.create = Some(draft.create());
            return plan;
        }
        busy = busy || rollout::roll(&mut draft);
        if !busy && deployment.status.is_complete(deployment) {
            plan.delete = draft.surplus();
        }
    }
    let changed = draft.all().into_iter().filter_map(|set| {
        let old = before.iter().find(|old| old.uid == set.uid)?;
        (old != set).then(|| (old.clone(), set.clone()))
    });
    plan.update = changed.collect();
    let sets = draft.all();
    let conditions = draft.conditions.clone();
    let compute = if rolling {
        status::rolled
    } else {
        status::counted
    };
    let status = compute(deployment, &sets, draft.new.as_ref(), conditions, draft.now);
    if status == deployment.status {
        if rolling {
            plan.again = status::next_check(deployment, &status, draft.now);
        }
    } else {
        plan.status = Some(status);
    }
    plan
}

/// The status once the new ReplicaSet has been created.
pub(crate) fn created(deployment: &Deployment, name: &str, now: Timestamp) -> Status {
    let message = format!("Created new replica set \"{name}\"");
    noted(deployment, "True", condition::NEW_SET_CREATED, message, now)
}

/// The status once the server has refused it.
pub(crate) fn refused(deployment: &Deployment, message: &str, now: Timestamp) -> Status {
    noted(
        deployment,
        "False",
        condition::CREATE_ERROR,
        message.to_owned(),
        now,
    )
}

fn noted(d: &Deployment, state: &str, reason: &str, message: String, now: Timestamp) -> Status {
    let mut status = d.status.clone();
    if d.spec.deadline().is_some() {
        let new = Condition::new(condition::PROGRESSING, state, reason, message, now);
        condition::set(&mut status.conditions, new);
    }
    status
}
