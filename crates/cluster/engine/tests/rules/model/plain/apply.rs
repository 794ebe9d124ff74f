//! Field ownership and server-side apply.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Effect, model_object,
    write::{Write, create},
};
use crate::model::{
    model_object::{ALWAYS, LABEL, Manager, ModelObject, VALUE},
    operation::Config,
};

/// The manager of writes that do not name a manager.
pub(super) const CLIENT: &str = "model Update";

type Owners = BTreeMap<Manager, BTreeSet<String>>;

/// The creator owns all fields of a new object.
pub(super) fn own_all(model_object: &mut ModelObject, manager: &str) {
    let all = model_object.ownable().into_keys().collect();
    model_object.owners.insert(manager.to_owned(), all);
}

/// The owners after a change: changed or removed fields lose their owners, changed or added
/// fields belong to the writer.
pub(super) fn owners_after(
    owners: &Owners,
    old: &ModelObject,
    new: &ModelObject,
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
        let mut new = model_object(write.key.kind, 0, 0, false);
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
        return Effect::rejected("Conflict");
    }
    if let Err(rejected) = write.old() {
        return rejected;
    }
    new.owners = owners_after(&old.owners, old, &new, None);
    new.owners.insert(manager, own);
    write.store(old, new)
}
