//! Creates, updates and patches.

use std::collections::{BTreeMap, BTreeSet};

use longshore_model::PatchKind;

use super::{
    Effect, Step,
    apply::{CLIENT, owners_after},
    definition,
};
use crate::model::{
    kind::{Key, Kind},
    model_object::{Manager, ModelObject, State, image, shown},
    operation::Change,
};

/// A write to an existing object.
pub(super) struct Write<'a> {
    pub(super) state: &'a State,
    /// The revision that the write produces.
    pub(super) next: u64,
    pub(super) key: Key,
    /// The version and the UID that were sent; an empty UID means none.
    pub(super) version: Option<u64>,
    pub(super) uid: String,
    /// The owners, as the client read and returned them.
    pub(super) sent_owners: Option<&'a BTreeMap<Manager, BTreeSet<String>>>,
}

impl Write<'_> {
    /// The object, if the preconditions hold.
    pub(super) fn old(&self) -> Result<&ModelObject, Effect> {
        let Some(old) = self.state.get(&self.key) else {
            return Err(Effect::rejected("NotFound"));
        };
        let other_uid = !self.uid.is_empty() && self.uid != old.uid;
        if other_uid || self.version.is_some_and(|version| version != old.version) {
            return Err(Effect::rejected("Conflict"));
        }
        Ok(old)
    }

    /// Stores a new state, if it differs from the old one.
    pub(super) fn store(&self, old: &ModelObject, mut new: ModelObject) -> Effect {
        if new == *old && new.stored.0 == old.stored.0 {
            return Effect::one(&self.key, old.clone(), Vec::new());
        }
        new.version = self.next;
        let held = self.key.kind == Kind::Namespace && !new.value.is_empty();
        let gone = new.grace.is_some_and(|left| left <= 0) && new.finalizers.is_empty() && !held;
        let step = if gone {
            let last = ModelObject {
                version: self.next,
                ..old.clone()
            };
            Step::gone(&self.key, old, last)
        } else {
            Step::changed(&self.key, old, new.clone())
        };
        Effect::one(&self.key, new, vec![step])
    }
}

pub(super) fn create(state: &State, version: u64, key: &Key, model_object: ModelObject) -> Effect {
    if key.kind == Kind::Shoe && definition::is_terminating(state) {
        return Effect::rejected("Forbidden");
    }
    if key.kind.is_namespaced() {
        match state.get(&Key::new(Kind::Namespace, "", &key.namespace)) {
            None => return Effect::rejected("NotFound"),
            Some(namespace) if namespace.grace.is_some() => return Effect::rejected("Forbidden"),
            Some(_) => {}
        }
    }
    if state.contains_key(key) {
        return Effect::rejected("AlreadyExists");
    }
    let new = ModelObject {
        version,
        stored: definition::stored(state, key.kind),
        ..model_object
    };
    let mut steps = vec![Step::made(key, new.clone())];
    let account = Key::new(Kind::Account, &key.name, "default");
    if key.kind == Kind::Namespace && !state.contains_key(&account) {
        let model_object = ModelObject {
            version: version + 1,
            ..ModelObject::default()
        };
        steps.push(Step::made(&account, model_object));
    }
    Effect::one(key, new, steps)
}

/// An update or patch: `change` returns the new content.
pub(super) fn write(write: &Write<'_>, change: &dyn Fn(&ModelObject) -> ModelObject) -> Effect {
    let kind = write.key.kind;
    let old = match write.old() {
        Ok(old) => old,
        Err(effect) => return effect,
    };
    let mut new = change(old);
    let held: BTreeSet<_> = old.finalizers.iter().collect();
    let adds = new.finalizers.iter().any(|name| !held.contains(name));
    // A made-up Job lacks the selector that the server generated.
    let other_spec = new.node != old.node || (kind == Kind::Job && new.is_new);
    new.is_new = false;
    if other_spec || (old.grace.is_some() && adds) {
        return Effect::rejected("Invalid");
    }
    if kind == Kind::Shoe {
        new.stored = definition::stored(write.state, kind);
    }
    if kind == Kind::Definition {
        new.status = definition::status_after(old, &new);
    }
    if kind == Kind::ConfigMap {
        let base = write.sent_owners.unwrap_or(&old.owners);
        new.owners = owners_after(base, old, &new, Some(CLIENT));
    }
    if kind.has_generation() && new.value != old.value {
        new.generation += 1;
    }
    write.store(old, new)
}

/// The metadata in a write of the status.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    pub(super) label: Option<String>,
    pub(super) finalizers: Option<Vec<String>>,
}

/// A write of the status. For built-in kinds it also changes metadata.
pub(super) fn status(write: &Write<'_>, status: &str, sent: Metadata) -> Effect {
    let old = match write.old() {
        Ok(old) => old,
        Err(effect) => return effect,
    };
    let mut new = ModelObject {
        status: status.to_owned(),
        ..old.clone()
    };
    if write.key.kind == Kind::Shoe {
        new.stored = definition::stored(write.state, Kind::Shoe);
        return write.store(old, new);
    }
    new.label = sent.label.unwrap_or(new.label);
    new.finalizers = sent.finalizers.unwrap_or(new.finalizers);
    let adds = (new.finalizers.iter()).any(|name| !old.finalizers.contains(name));
    if old.grace.is_some() && adds {
        return Effect::rejected("Invalid");
    }
    write.store(old, new)
}

/// The result of a patch.
pub(super) fn changed(
    kind: Kind,
    old: &ModelObject,
    sort: PatchKind,
    change: Change,
) -> ModelObject {
    let mut new = old.clone();
    match change {
        Change::Value(value) if kind == Kind::Definition => new.value = shown(kind, value),
        Change::Value(value) if kind != Kind::Namespace => {
            new.value = if kind == Kind::Pod {
                image(value)
            } else {
                value.to_string()
            };
        }
        Change::Label(label) | Change::Value(label) => new.label = label.to_string(),
        Change::Finalizers(bits) => {
            let sent = ["a.b/c", "d.e/f"].into_iter().enumerate();
            let sent = sent.filter(|(i, _)| bits & (1 << i) != 0);
            let mut sent: Vec<String> = sent.map(|(_, name)| name.to_owned()).collect();
            if sort == PatchKind::Strategic {
                sent = as_sets(&old.finalizers, sent);
            }
            new.finalizers = sent;
        }
    }
    new
}

/// The result of a strategic merge of two sets: the items of the patch in their order, and
/// each remaining item before the one that it preceded.
fn as_sets(held: &[String], sent: Vec<String>) -> Vec<String> {
    let mut rest = held.to_vec();
    rest.retain(|name| !sent.contains(name));
    let stood = |name: &String| held.iter().position(|other| other == name);
    let mut merged = Vec::new();
    for name in sent {
        let first = match stood(&name) {
            Some(place) => rest
                .iter()
                .take_while(|other| stood(other) < Some(place))
                .count(),
            None => 0,
        };
        merged.extend(rest.drain(..first));
        merged.push(name);
    }
    merged.extend(rest);
    merged
}
