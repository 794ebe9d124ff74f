//! CustomResourceDefinitions at work: after every write that may concern them
//! their names are accepted, the kinds they make come, change and go, and a
//! definition that is being deleted takes its objects along.

use std::{collections::HashMap, ops::Bound, sync::Arc};

use serde_json::Value;

use super::{Machine, SLICE, SLICE_BYTES, Transaction, delete, replace};
use crate::{
    DeleteOptions, Error, Object,
    custom::{self, CLEANUP, DEFINITION_GROUP, DEFINITION_KIND, Outline},
    json,
    kinds::{Entry, KindId},
    state::{Cleaning, State},
};

fn kind(state: &State) -> Option<KindId> {
    state.kinds.builtin_id(DEFINITION_GROUP, DEFINITION_KIND)
}

/// Whether a kind is that of definitions.
pub(super) fn is_kind_of_definitions(state: &State, id: KindId) -> bool {
    let gvk = &state.kinds.entry(id).info.gvk;
    custom::is_definition(&gvk.group, &gvk.kind)
}

/// Makes the kinds of the definitions in a loaded state.
pub(crate) fn load(state: &mut State) {
    let Some(kind) = kind(state) else { return };
    let stored: Vec<Arc<Object>> = state.table(kind).objects.values().cloned().collect();
    for object in stored {
        let definition = object.map();
        let outline = Arc::new(Outline::of(&definition));
        if outline.is_established {
            let mut entry = Entry::custom(&definition, object.revision());
            entry.outline = Some(outline.clone());
            state.add_kind(entry);
        }
        state.definitions.insert(object.key().clone(), outline);
    }
}

/// Whether definitions wait for their objects to go.
pub(super) fn is_cleaning(state: &State) -> bool {
    let mut outlines = state.definitions.values();
    outlines.any(|outline| outline.awaits_cleanup)
}

/// Brings definitions and kinds in line, until nothing is left to do but to
/// delete more objects of definitions that are being deleted.
pub(super) fn settle(tx: &mut Transaction<'_>) -> Result<(), Error> {
    if !tx.machine.unsettled && !tx.machine.drained {
        return Ok(());
    }
    let Some(kind) = kind(tx.state()) else {
        return Ok(());
    };
    let mut slice = Slice::default();
    loop {
        let changed = std::mem::take(&mut tx.machine.unsettled);
        if !std::mem::take(&mut tx.machine.drained) && !changed {
            return Ok(());
        }
        if changed {
            accept_names(tx, kind)?;
            sync_kinds(&mut *tx.machine, kind);
        }
        clean_up(tx, kind, &mut slice)?;
    }
}

fn accept_names(tx: &mut Transaction<'_>, kind: KindId) -> Result<(), Error> {
    for (name, outline) in tx.state().definitions.clone() {
        if outline.has_its_names {
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
            .filter(|other| other.group == outline.group);
        if custom::accept(&mut new, group, tx.now) {
            replace::store(tx, kind, &object, &before, &new)?;
        }
    }
    Ok(())
}

/// The kinds follow the definitions.
fn sync_kinds(machine: &mut Machine, kind: KindId) {
    let state = &mut machine.state;
    let outlines = state.definitions.clone();
    let known: Vec<(KindId, Box<str>, Box<str>)> = state
        .kinds
        .iter()
        .filter_map(|(id, entry)| Some((id, entry.definition.clone()?, entry.uid.clone())))
        .collect();
    for (id, name, uid) in &known {
        let outline = outlines.get(&**name);
        if outline.is_none_or(|outline| outline.uid != *uid) {
            state.end_kind(*id);
            machine.touched.push(*id);
        }
    }
    let known: HashMap<Box<str>, KindId> =
        known.into_iter().map(|(id, _, uid)| (uid, id)).collect();
    for (name, outline) in &outlines {
        let own = known.get(&outline.uid).copied();
        let made_of = own.and_then(|id| state.kinds.entry(id).outline.as_ref());
        if !outline.is_established || made_of.is_some_and(|made| Arc::ptr_eq(made, outline)) {
            continue;
        }
        let Some(object) = state.table(kind).objects.get(name).cloned() else {
            continue;
        };
        let mut made = Entry::custom(&object.map(), object.revision());
        made.outline = Some(outline.clone());
        let Some(id) = own else {
            state.add_kind(made);
            continue;
        };
        let old = state.kinds.entry(id);
        if old.made_of == made.made_of
            && old.terminating == made.terminating
            && old.info == made.info
            && same_names(old, &made)
        {
            state.note_definition(id, outline.clone());
            continue;
        }
        made.news = old.news.clone();
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

/// How much of a deletion of many objects is done at once.
#[derive(Debug)]
struct Slice {
    objects: usize,
    bytes: usize,
}

impl Default for Slice {
    fn default() -> Self {
        Self {
            objects: SLICE,
            bytes: SLICE_BYTES,
        }
    }
}

impl Slice {
    /// Takes one object of the slice; `false` when it is used up.
    fn take(&mut self, object: &Object) -> bool {
        if self.objects == 0 || self.bytes == 0 {
            return false;
        }
        self.objects -= 1;
        self.bytes = self.bytes.saturating_sub(object.bytes().len());
        true
    }
}

/// Deletes what definitions that are being deleted still have, a slice at a
/// time, and lets those go that have nothing left.
fn clean_up(tx: &mut Transaction<'_>, kind: KindId, slice: &mut Slice) -> Result<(), Error> {
    for (name, outline) in tx.state().definitions.clone() {
        if !outline.awaits_cleanup {
            continue;
        }
        let entry = tx
            .kinds()
            .iter()
            .find(|(_, entry)| entry.uid == outline.uid)
            .map(|(id, _)| id);
        let (terminating, reason, message) = match entry {
            None => (false, "NeverEstablished", "resource was never established"),
            Some(id) => {
                let is_first = !tx.state().cleaning.contains_key(&id);
                delete_objects(tx, id, slice)?;
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
                list.retain(|name| name != CLEANUP);
                if list.is_empty() {
                    metadata.remove("finalizers");
                }
            }
        }
        replace::store(tx, kind, &object, &before, &new)?;
    }
    Ok(())
}

/// Begins the deletion of a kind's objects, as many as the slice has place for.
/// What is left is a chore.
fn delete_objects(tx: &mut Transaction<'_>, id: KindId, slice: &mut Slice) -> Result<(), Error> {
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
        if !slice.take(object) {
            tx.machine.chores = true;
            cleaning = Cleaning::UpTo(last);
            break;
        }
        last = key.clone();
        if !object.is_being_deleted() {
            delete::one(tx, id, object, &DeleteOptions::default(), false)?;
        }
    }
    tx.machine.state.cleaning.insert(id, cleaning);
    Ok(())
}
