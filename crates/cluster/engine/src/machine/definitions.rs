//! Reconciles CustomResourceDefinitions. After every write that may affect them, it accepts their
//! names, adds, changes and removes the kinds they define, and deletes the objects of definitions
//! that are being deleted.

use std::{collections::HashMap, ops::Bound, sync::Arc};

use longshore_builtin::{Lifecycle, json};
use serde_json::Value;

use super::{MAX_BYTES_PER_TURN, MAX_OBJECTS_PER_TURN, Machine, Transaction, delete, replace};
use crate::{
    DeleteOptions, Error, Object,
    custom::{self, CLEANUP_FINALIZER, DEFINITION_GROUP, DEFINITION_KIND, DefinitionSummary},
    kinds::{Entry, KindId},
    state::{Cleaning, State},
};

fn kind(state: &State) -> Option<KindId> {
    state.kinds.builtin_id(DEFINITION_GROUP, DEFINITION_KIND)
}

/// Returns true if a kind is CustomResourceDefinition.
pub(super) fn is_kind_of_definitions(state: &State, id: KindId) -> bool {
    state.kinds.entry(id).rules.lifecycle == Lifecycle::Definition
}

/// Adds the kinds of the definitions in a loaded state.
pub(crate) fn load(state: &mut State) {
    let Some(kind) = kind(state) else { return };
    let stored: Vec<Arc<Object>> = state.table(kind).objects.values().cloned().collect();
    for object in stored {
        let definition = object.map();
        let summary = Arc::new(DefinitionSummary::of(&definition));
        if summary.is_established {
            let mut entry = Entry::custom(&definition, object.revision());
            entry.summary = Some(summary.clone());
            state.add_kind(entry);
        }
        state.definitions.insert(object.key().clone(), summary);
    }
}

/// Returns true if definitions wait for their objects to be deleted.
pub(super) fn has_pending_cleanup(state: &State) -> bool {
    let mut summaries = state.definitions.values();
    summaries.any(|summary| summary.awaits_cleanup)
}

/// The UIDs of the definitions whose objects are to be deleted later.
pub(crate) fn deferred_cleanups(state: &State) -> Vec<Box<str>> {
    let summaries = state.definitions.values();
    summaries
        .filter(|_| state.defers_cleanup)
        .filter(|summary| summary.awaits_cleanup && !has_begun(state, &summary.uid))
        .map(|summary| summary.uid.clone())
        .collect()
}

/// Returns true if the deletion of the objects of a definition has begun.
fn has_begun(state: &State, uid: &str) -> bool {
    let mut cleaning = state.cleaning.keys();
    cleaning.any(|id| *state.kinds.entry(*id).uid == *uid)
}

/// Begins the deferred deletion of the objects of these definitions.
pub(crate) fn begin_cleanup(tx: &mut Transaction<'_>, uids: Vec<Box<str>>) {
    tx.machine.begins_cleanup = uids;
    tx.machine.lost_terminating_objects = true;
}

/// Reconciles definitions and kinds until only the deletion of further objects
/// remains.
pub(super) fn reconcile(tx: &mut Transaction<'_>) -> Result<(), Error> {
    if !tx.machine.needs_reconcile && !tx.machine.lost_terminating_objects {
        return Ok(());
    }
    let Some(kind) = kind(tx.state()) else {
        return Ok(());
    };
    let mut budget = DeletionBudget::default();
    let begins = std::mem::take(&mut tx.machine.begins_cleanup);
    loop {
        let changed = std::mem::take(&mut tx.machine.needs_reconcile);
        if !std::mem::take(&mut tx.machine.lost_terminating_objects) && !changed {
            return Ok(());
        }
        if changed {
            accept_names(tx, kind)?;
            sync_kinds(&mut *tx.machine, kind);
        }
        clean_up(tx, kind, &begins, &mut budget)?;
    }
}

fn accept_names(tx: &mut Transaction<'_>, kind: KindId) -> Result<(), Error> {
    for (name, summary) in tx.state().definitions.clone() {
        if summary.has_accepted_names {
            continue;
        }
        let Some(object) = tx.get(kind, &name).cloned() else {
            continue;
        };
        let before = object.map();
        let mut new = before.clone();
        let all = tx.state().definitions.clone();
        let group = all
            .values()
            .map(|other| &**other)
            .filter(|other| other.group == summary.group);
        if custom::accept(&mut new, group, tx.now) {
            replace::store(tx, kind, &object, &before, &new)?;
        }
    }
    Ok(())
}

/// Updates the kinds to match the definitions.
fn sync_kinds(machine: &mut Machine, kind: KindId) {
    let state = &mut machine.state;
    let summaries = state.definitions.clone();
    let known: Vec<(KindId, Box<str>, Box<str>)> = state
        .kinds
        .iter()
        .filter_map(|(id, entry)| Some((id, entry.definition.clone()?, entry.uid.clone())))
        .collect();
    for (id, name, uid) in &known {
        let summary = summaries.get(&**name);
        if summary.is_none_or(|summary| summary.uid != *uid) {
            state.end_kind(*id);
            machine.touched.push(*id);
        }
    }
    let known: HashMap<Box<str>, KindId> =
        known.into_iter().map(|(id, _, uid)| (uid, id)).collect();
    for (name, summary) in &summaries {
        let own = known.get(&summary.uid).copied();
        let current = own.and_then(|id| state.kinds.entry(id).summary.as_ref());
        if !summary.is_established || current.is_some_and(|made| Arc::ptr_eq(made, summary)) {
            continue;
        }
        let Some(object) = state.table(kind).objects.get(name).cloned() else {
            continue;
        };
        let mut made = Entry::custom(&object.map(), object.revision());
        made.summary = Some(summary.clone());
        let Some(id) = own else {
            state.add_kind(made);
            continue;
        };
        let old = state.kinds.entry(id);
        if old.definition_spec == made.definition_spec
            && old.is_terminating == made.is_terminating
            && old.info == made.info
            && same_names(old, &made)
        {
            state.set_definition_summary(id, summary.clone());
            continue;
        }
        made.revisions = old.revisions.clone();
        state.change_kind(id, |entry| *entry = made);
        machine.touched.push(id);
    }
}

fn same_names(old: &Entry, new: &Entry) -> bool {
    old.views.len() == new.views.len()
        && old
            .views
            .iter()
            .zip(&new.views)
            .all(|(old, new)| old.info == new.info)
}

/// The remaining budget of a deletion of many objects.
#[derive(Debug)]
struct DeletionBudget {
    objects: usize,
    bytes: usize,
}

impl Default for DeletionBudget {
    fn default() -> Self {
        Self {
            objects: MAX_OBJECTS_PER_TURN,
            bytes: MAX_BYTES_PER_TURN,
        }
    }
}

impl DeletionBudget {
    /// Takes one object from the budget; `false` if it is used up.
    fn take(&mut self, object: &Object) -> bool {
        if self.objects == 0 || self.bytes == 0 {
            return false;
        }
        self.objects -= 1;
        self.bytes = self.bytes.saturating_sub(object.bytes().len());
        true
    }
}

/// Deletes the remaining objects of terminating definitions, one slice at a time, and removes
/// definitions that have no objects left. If cleanup is deferred, continues only deletions that
/// have begun, and begins with the definitions in `begins`.
fn clean_up(
    tx: &mut Transaction<'_>,
    kind: KindId,
    begins: &[Box<str>],
    budget: &mut DeletionBudget,
) -> Result<(), Error> {
    for (name, summary) in tx.state().definitions.clone() {
        let is_deferred = tx.state().defers_cleanup
            && !begins.contains(&summary.uid)
            && !has_begun(tx.state(), &summary.uid);
        if !summary.awaits_cleanup || is_deferred {
            continue;
        }
        let entry = tx
            .kinds()
            .iter()
            .find(|(_, entry)| entry.uid == summary.uid)
            .map(|(id, _)| id);
        let (terminating, reason, message) = match entry {
            None => (false, "NeverEstablished", "resource was never established"),
            Some(id) => {
                let is_first = !tx.state().cleaning.contains_key(&id);
                delete_objects(tx, id, budget)?;
                if tx.state().table(id).objects.is_empty() {
                    (false, "InstanceDeletionCompleted", "removed all instances")
                } else if is_first {
                    (
                        true,
                        "InstanceDeletionInProgress",
                        "CustomResource deletion is in progress",
                    )
                } else {
                    continue;
                }
            }
        };
        let Some(object) = tx.get(kind, &name).cloned() else {
            continue;
        };
        let before = object.map();
        let mut new = before.clone();
        custom::set_condition(
            &mut new,
            "Terminating",
            terminating,
            reason,
            message,
            tx.now,
        );
        if !terminating {
            let metadata = json::child(&mut new, "metadata");
            if let Some(Value::Array(list)) = metadata.get_mut("finalizers") {
                list.retain(|name| name != CLEANUP_FINALIZER);
                if list.is_empty() {
                    metadata.remove("finalizers");
                }
            }
        }
        replace::store(tx, kind, &object, &before, &new)?;
    }
    Ok(())
}

/// Marks a kind's objects for deletion, up to the budget. The rest becomes a
/// background task.
fn delete_objects(
    tx: &mut Transaction<'_>,
    id: KindId,
    budget: &mut DeletionBudget,
) -> Result<(), Error> {
    let mut last: Arc<str> = match tx.state().cleaning.get(&id) {
        Some(Cleaning::Begun) => return Ok(()),
        Some(Cleaning::UpTo(key)) => key.clone(),
        None => "".into(),
    };
    let objects = tx.state().table(id).objects.clone();
    let mut cleaning = Cleaning::Begun;
    let begin = last.clone();
    let from: (Bound<&str>, Bound<&str>) = (Bound::Excluded(&*begin), Bound::Unbounded);
    for (key, object) in objects.range::<_, str>(from) {
        if !budget.take(object) {
            tx.machine.background_work_pending = true;
            cleaning = Cleaning::UpTo(last);
            break;
        }
        last = key.clone();
        if !object.is_being_deleted() {
            delete::delete_one(tx, id, object, &DeleteOptions::default())?;
        }
    }
    tx.machine.state.cleaning.insert(id, cleaning);
    Ok(())
}
