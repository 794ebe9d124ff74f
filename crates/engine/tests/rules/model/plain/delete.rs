//! Deletions: begun, gone on with, or done.

use longshore_engine::Propagation;

use super::{Step, definition};
use crate::model::{
    kind::{Key, Kind},
    thing::{NO_GRACE, Thing},
};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The answer of a deletion, and what it changed.
pub(super) fn delete(
    next: u64,
    key: &Key,
    old: &Thing,
    propagation: Option<Propagation>,
    grace: Option<i64>,
) -> (Thing, Vec<Step>) {
    let mut new = old.clone();
    if key.kind == Kind::Definition && old.grace.is_none() {
        definition::begin_deletion(&mut new);
        new.version = next;
        return (new.clone(), vec![Step::changed(key, old, new)]);
    }
    if key.kind == Kind::Pod {
        match old.grace {
            Some(left) if grace.is_some_and(|asked| asked < left) => new.grace = grace,
            // It goes on; only the policy can still be changed.
            Some(left) if left > 0 && propagation.is_none() => return (old.clone(), Vec::new()),
            Some(_) => {}
            None => {
                new.grace = Some(if old.node.is_empty() {
                    0
                } else {
                    grace.unwrap_or(30)
                });
                new.generation += 1;
            }
        }
    }
    new.finalizers = with_policy(key.kind, &old.finalizers, propagation);
    let waits =
        !new.finalizers.is_empty() || (key.kind == Kind::Namespace && !new.value.is_empty());
    if waits && new.grace.is_none_or(|left| left == NO_GRACE) {
        // Namespaces have no grace.
        let is_namespace = key.kind == Kind::Namespace;
        new.grace = Some(if is_namespace { NO_GRACE } else { 0 });
        new.generation += i64::from(old.grace.is_none() && key.kind.has_generation());
    }
    if waits || new.grace.is_some_and(|left| left > 0) {
        if new == *old {
            return (new, Vec::new());
        }
        new.version = next;
        return (new.clone(), vec![Step::changed(key, old, new)]);
    }
    if new.grace == Some(0) && old.grace != Some(0) {
        // The end of the grace is told before the end of the object.
        new.version = next;
        let told = Thing {
            version: next + 1,
            ..new.clone()
        };
        let gone = Step::gone(key, &new, told.clone());
        return (told, vec![Step::changed(key, old, new), gone]);
    }
    let told = Thing {
        version: next,
        ..old.clone()
    };
    (told.clone(), vec![Step::gone(key, old, told)])
}

/// The finalizers with the one that says what becomes of dependents.
fn with_policy(kind: Kind, held: &[String], propagation: Option<Propagation>) -> Vec<String> {
    let has = |name: &str| held.iter().any(|held| held == name);
    let policy = match propagation {
        None if has(ORPHAN) => Some(ORPHAN),
        None if has(FOREGROUND) => Some(FOREGROUND),
        None => (kind == Kind::Job).then_some(ORPHAN),
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Background) => None,
    };
    let mut finalizers = held.to_vec();
    finalizers.retain(|name| name != ORPHAN && name != FOREGROUND);
    finalizers.extend(policy.map(str::to_owned));
    finalizers
}
