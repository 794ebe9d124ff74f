//! Who owns which fields, and server-side apply.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Effect, thing,
    write::{Write, create},
};
use crate::model::{
    operation::Config,
    thing::{ALWAYS, LABEL, Manager, Thing, VALUE},
};

/// The manager of writes that name none.
pub(super) const CLIENT: &str = "model Update";

type Owners = BTreeMap<Manager, BTreeSet<String>>;

/// A new object's creator owns all of it.
pub(super) fn own_all(thing: &mut Thing, manager: &str) {
    let all = thing.ownable().into_keys().collect();
    thing.owners.insert(manager.to_owned(), all);
}

/// Who owns what when an object has changed: what changed or went is lost to
/// all, and what changed or came is the writer's.
pub(super) fn owners_after(
    owners: &Owners,
    old: &Thing,
    new: &Thing,
    writer: Option<&str>,
) -> Owners {
    let (before, after) = (old.ownable(), new.ownable());
    let changed = |name: &str| before.get(name) != after.get(name);
    let mut owners = owners.clone();
    for owned in owners.values_mut() {
        owned.retain(|name| !changed(name));
    }
    let own: BTreeSet<String> = after.keys().filter(|name| changed(name)).cloned().collect();
    if let Some(writer) = writer.filter(|_| !own.is_empty()) {
        let owned = owners.entry(writer.to_owned()).or_default();
        owned.extend(own);
    }
    owners.retain(|_, owned| !owned.is_empty());
    owners
}

/// Applies a configuration.
pub(super) fn apply(write: &Write<'_>, name: &str, config: &Config, force: bool) -> Effect {
    let manager = format!("{name} Apply");
    let text = |number: Option<u8>| number.map(|number| number.to_string());
    let wanted = [(LABEL, text(config.label)), (VALUE, text(config.value))];
    let own: BTreeSet<String> = wanted
        .iter()
        .filter(|(_, value)| value.is_some())
        .map(|(name, _)| *name)
        .chain([ALWAYS])
        .map(str::to_owned)
        .collect();
    let Some(old) = write.state.get(&write.key) else {
        let mut new = thing(write.key.kind, 0, 0, false);
        [new.label, new.value] = wanted.map(|(_, value)| value.unwrap_or_default());
        new.owners.insert(manager, own);
        return create(write.state, write.next, &write.key, new);
    };
    let mut new = old.clone();
    let mut conflicts = false;
    for (field, value) in wanted {
        let others = old.owners.iter().filter(|(other, _)| **other != manager);
        let is_others = others.into_iter().any(|(_, owned)| owned.contains(field));
        let was_own = old
            .owners
            .get(&manager)
            .is_some_and(|own| own.contains(field));
        let place = if field == LABEL {
            &mut new.label
        } else {
            &mut new.value
        };
        match value {
            Some(value) => {
                conflicts |= is_others && *place != value;
                *place = value;
            }
            None if was_own && !is_others => place.clear(),
            None => {}
        }
    }
    if conflicts && !force {
        return Effect::refused("Conflict");
    }
    if let Err(refused) = write.old() {
        return refused;
    }
    new.owners = owners_after(&old.owners, old, &new, None);
    new.owners.insert(manager, own);
    write.keep(old, new)
}
