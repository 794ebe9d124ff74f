//! Decides what to do about a Deployment.

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

/// The input of a decision.
pub(crate) struct Observed<'a> {
    /// The Deployment.
    pub(crate) deployment: &'a Deployment,
    /// The ReplicaSets of the Deployment.
    pub(crate) sets: Vec<ReplicaSet>,
    /// The UIDs of the ReplicaSets with pods that have not ended.
    pub(crate) running: &'a [String],
    /// The current time.
    pub(crate) now: Timestamp,
}

/// The actions to take, in this order.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// The ReplicaSets to change: the current and the desired state.
    pub(crate) update: Vec<(ReplicaSet, ReplicaSet)>,
    /// The ReplicaSet to create. If it is set, the plan has no other actions.
    pub(crate) create: Option<NewSet>,
    /// ReplicaSets to delete.
    pub(crate) delete: Vec<ReplicaSet>,
    /// The Deployment's new revision, if it changes.
    pub(crate) revision: Option<String>,
    /// The new status, if it changes.
    pub(crate) status: Option<Status>,
    /// The time until the next check if nothing changes.
    pub(crate) requeue_after: Option<Duration>,
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

/// Returns the ReplicaSet for the Deployment's template.
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

/// Decides what to do.
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
        // Only the status is updated.
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
            plan.requeue_after = progress::next_check(deployment, &status, draft.now);
        }
    } else {
        plan.status = Some(status);
    }
    plan
}

/// Returns the status after the new ReplicaSet has been created.
pub(crate) fn created(deployment: &Deployment, name: &str, now: Timestamp) -> Status {
    let message = format!("Created new replica set \"{name}\"");
    with_progressing(deployment, "True", condition::NEW_SET_CREATED, message, now)
}

/// Returns the status after the server has rejected the new ReplicaSet.
pub(crate) fn create_failed(deployment: &Deployment, message: &str, now: Timestamp) -> Status {
    with_progressing(
        deployment,
        "False",
        condition::CREATE_ERROR,
        message.to_owned(),
        now,
    )
}

fn with_progressing(
    d: &Deployment,
    state: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) -> Status {
    let mut status = d.status.clone();
    if d.spec.deadline().is_some() {
        let new = Condition::new(condition::PROGRESSING, state, reason, message, now);
        condition::set(&mut status.conditions, new);
    }
    status
}
