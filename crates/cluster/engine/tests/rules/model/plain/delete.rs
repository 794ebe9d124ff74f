//! Deletions: started, continued, or completed.

use longshore_engine::Propagation;

use super::{Step, definition};
use crate::model::{
    kind::{Key, Kind},
    model_object::{ModelObject, NO_GRACE},
};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The response to a deletion, and its changes.
pub(super) fn delete(
    next: u64,
    key: &Key,
    old: &ModelObject,
    propagation: Option<Propagation>,
    grace: Option<i64>,
) -> (ModelObject, Vec<Step>) {
    let mut new = old.clone();
    if key.kind == Kind::Definition && old.grace.is_none() {
        definition::begin_deletion(&mut new);
        new.version = next;
        return (new.clone(), vec![Step::changed(key, old, new)]);
    }
    if key.kind == Kind::Pod {
        match old.grace {
            Some(left) if grace.is_some_and(|asked| asked < left) => new.grace = grace,
            // The deletion continues as it began.
            Some(left) if left > 0 => return (old.clone(), Vec::new()),
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
        // Namespaces have no grace period.
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
        // Watches get the end of the grace period before the end of the object.
        new.version = next;
        let last = ModelObject {
            version: next + 1,
            ..new.clone()
        };
        let gone = Step::gone(key, &new, last.clone());
        return (last, vec![Step::changed(key, old, new), gone]);
    }
    let last = ModelObject {
        version: next,
        ..old.clone()
    };
    (last.clone(), vec![Step::gone(key, old, last)])
}

/// The finalizers, including the finalizer for the propagation policy.
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
