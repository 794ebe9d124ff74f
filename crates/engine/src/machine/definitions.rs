//! CustomResourceDefinitions at work: after every write that may concern them
//! their names are accepted, the kinds they make come, change and go, and a
//! definition that is being deleted takes its objects along.

use std::sync::Arc;

use longshore_model::time;
use serde_json::Value;

use super::{Draftable, Machine, Transaction, delete, update};
use crate::{
    DeleteOptions, Error, Object,
    custom::{self, CLEANUP},
    json,
    kinds::KindId,
    state::State,
};

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "CustomResourceDefinition";

/// Whether a kind is that of definitions.
pub(super) fn is_definition(group: &str, kind: &str) -> bool {
    group == GROUP && kind == KIND
}

fn kind(state: &State) -> Option<KindId> {
    state.kinds.builtin_id(GROUP, KIND)
}

/// What the first delete of a definition does to it: as in Kubernetes neither
/// a policy for dependents nor the generation counts.
pub(super) fn begin_deletion(definition: &mut Draftable, now: jiff::Timestamp) {
    let metadata = json::child(definition, "metadata");
    metadata.insert("deletionTimestamp".into(), time::seconds(now).into());
    let finalizers = metadata
        .entry("finalizers")
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = finalizers
        && !list.iter().any(|name| name == CLEANUP)
    {
        list.push(CLEANUP.into());
    }
    let message =
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    custom::set_condition(
        definition,
        "Terminating",
        true,
        "InstanceDeletionPending",
        message,
        now,
    );
}

/// Makes the kinds of the definitions in a loaded state.
pub(crate) fn load(state: &mut State) {
    let Some(kind) = kind(state) else { return };
    let stored: Vec<Arc<Object>> = state.table(kind).objects.values().cloned().collect();
    for object in stored {
        let definition = object.map();
        if custom::holds(&definition, "Established") {
            state.add_kind(custom::entry(&definition, object.revision()));
        }
    }
}

/// Whether a write to a kind may concern the definitions.
pub(super) fn concerns(state: &State, id: KindId, removed: bool) -> bool {
    let entry = state.kinds.entry(id);
    is_definition(&entry.info.gvk.group, &entry.info.gvk.kind) || (removed && entry.terminating)
}

/// Brings definitions and kinds in line, until nothing is left to do.
pub(super) fn settle(tx: &mut Transaction<'_>) -> Result<(), Error> {
    let Some(kind) = kind(tx.state()) else {
        return Ok(());
    };
    while std::mem::take(&mut tx.machine.unsettled) {
        accept_names(tx, kind)?;
        sync_kinds(&mut *tx.machine, kind);
        clean_up(tx, kind)?;
    }
    Ok(())
}

fn all(tx: &Transaction<'_>, kind: KindId) -> Vec<Arc<Object>> {
    tx.state().table(kind).objects.values().cloned().collect()
}

fn accept_names(tx: &mut Transaction<'_>, kind: KindId) -> Result<(), Error> {
    let objects = all(tx, kind);
    let mut definitions: Vec<Draftable> = objects.iter().map(|object| object.map()).collect();
    for (index, object) in objects.iter().enumerate() {
        let mut new = definitions[index].clone();
        let group = json::text(&new, "spec.group").to_owned();
        let same_group = |other: &&Draftable| json::text(other, "spec.group") == group;
        if custom::accept(&mut new, definitions.iter().filter(same_group), tx.now) {
            update::store(tx, kind, object, &definitions[index], &new)?;
            definitions[index] = new;
        }
    }
    Ok(())
}

/// The kinds follow the definitions.
fn sync_kinds(machine: &mut Machine, kind: KindId) {
    let state = &mut machine.state;
    let objects: Vec<Arc<Object>> = state.table(kind).objects.values().cloned().collect();
    let known: Vec<(KindId, Box<str>, Box<str>)> = state
        .kinds
        .iter()
        .filter_map(|(id, entry)| Some((id, entry.definition.clone()?, entry.uid.clone())))
        .collect();
    for (id, name, uid) in &known {
        let there = objects
            .iter()
            .any(|object| object.name() == &**name && object.uid() == &**uid);
        if !there {
            state.end_kind(*id);
            machine.touched.push(*id);
        }
    }
    for object in objects {
        let definition = object.map();
        if !custom::holds(&definition, "Established") {
            continue;
        }
        let own = known.iter().find(|(_, _, uid)| **uid == *object.uid());
        let mut made = custom::entry(&definition, object.revision());
        let Some((id, ..)) = own else {
            state.add_kind(made);
            continue;
        };
        let old = state.kinds.entry(*id);
        if old.made_of == made.made_of
            && old.terminating == made.terminating
            && old.info == made.info
            && same_names(old, &made)
        {
            continue;
        }
        made.news = old.news.clone();
        state.change_kind(*id, |entry| *entry = made);
        machine.touched.push(*id);
    }
}

fn same_names(old: &crate::kinds::Entry, new: &crate::kinds::Entry) -> bool {
    old.views.len() == new.views.len()
        && old
            .views
            .iter()
            .zip(&new.views)
            .all(|(old, new)| old.info == new.info)
}

/// Deletes what definitions that are being deleted still have, and lets those
/// go that have nothing left.
fn clean_up(tx: &mut Transaction<'_>, kind: KindId) -> Result<(), Error> {
    for object in all(tx, kind) {
        let before = object.map();
        let mut new = before.clone();
        let waits = json::at(&before, "metadata.finalizers")
            .and_then(Value::as_array)
            .is_some_and(|list| list.iter().any(|name| name == CLEANUP));
        if json::at(&before, "metadata.deletionTimestamp").is_none() || !waits {
            continue;
        }
        let entry = tx
            .kinds()
            .iter()
            .find(|(_, entry)| *entry.uid == *object.uid())
            .map(|(id, _)| id);
        let left = match entry {
            Some(id) => delete_objects(tx, id)?,
            None => 0,
        };
        let (terminating, reason, message) = match (entry, left) {
            (None, _) => (false, "NeverEstablished", "resource was never established"),
            (Some(_), 0) => (false, "InstanceDeletionCompleted", "removed all instances"),
            _ => (
                true,
                "InstanceDeletionInProgress",
                "CustomResource deletion is in progress",
            ),
        };
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
                list.retain(|name| name != CLEANUP);
                if list.is_empty() {
                    metadata.remove("finalizers");
                }
            }
        }
        update::store(tx, kind, &object, &before, &new)?;
    }
    Ok(())
}

/// Begins the deletion of a kind's objects; answers how many stay for now.
fn delete_objects(tx: &mut Transaction<'_>, id: KindId) -> Result<usize, Error> {
    let objects: Vec<Arc<Object>> = tx.state().table(id).objects.values().cloned().collect();
    for object in objects {
        if json::at(&object.map(), "metadata.deletionTimestamp").is_none() {
            delete::one(tx, id, &object, &DeleteOptions::default(), false)?;
        }
    }
    Ok(tx.state().table(id).objects.len())
}
