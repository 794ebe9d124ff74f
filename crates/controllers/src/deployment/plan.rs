//! What to do about a Deployment: from facts to actions.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    condition::{self, Condition},
    draft::Draft,
    facts::{Deployment, ReplicaSet},
    hash::{hash, labelled_selector, labelled_template},
    progress, proportion, revision, rollout,
    status::Status,
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

/// The ReplicaSet for the template.
fn new_set(draft: &Draft<'_>) -> NewSet {
    let (deployment, spec) = (draft.deployment, &draft.deployment.spec);
    let hash = hash(&spec.template, deployment.status.collision_count);
    let revision = revision::highest(&draft.old) + 1;
    let mut annotations = BTreeMap::new();
    revision::note_revision(&mut annotations, deployment, revision);
    revision::note_sizes(&mut annotations, deployment);
    let longest = 253 - 1 - hash.len();
    let name: String = deployment.key.name.chars().take(longest).collect();
    NewSet {
        name: format!("{name}-{hash}"),
        replicas: rollout::growth(draft, 0),
        annotations,
        selector: labelled_selector(&spec.selector, &hash),
        template: labelled_template(&spec.template, &hash),
        revision: revision.to_string(),
    }
}

/// Decides.
pub(crate) fn plan(observed: Observed<'_>) -> Plan {
    let before = observed.sets.clone();
    let deployment = observed.deployment;
    let mut draft = Draft::new(deployment, observed.sets, observed.now);
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
            plan.create = Some(new_set(&draft));
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
        progress::rolled
    } else {
        progress::counted
    };
    let status = compute(deployment, &sets, draft.new.as_ref(), conditions, draft.now);
    if status == deployment.status {
        if rolling {
            plan.again = progress::next_check(deployment, &status, draft.now);
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
