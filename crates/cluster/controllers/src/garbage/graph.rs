//! The graph of owners and dependents, and the decision about an object. Pure.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use longshore_client::{KindInfo, ObjectMeta, OwnerReference, Propagation};

use super::kinds::is_of;

/// The finalizer of foreground deletion: dependents are deleted first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of orphaning: dependents are kept without their owner.
pub(crate) const ORPHAN: &str = "orphan";

/// An object in the graph.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The kind of the object.
    pub(crate) kind: Arc<KindInfo>,
    /// The metadata of the object, without labels and annotations.
    pub(crate) meta: ObjectMeta,
}

impl Node {
    /// Returns true if the object is being deleted.
    pub(crate) fn is_deleting(&self) -> bool {
        self.meta.deletion_timestamp.is_some()
    }

    fn has(&self, finalizer: &str) -> bool {
        self.meta.finalizers.iter().any(|name| name == finalizer)
    }

    /// Returns true if an owner reference of a dependent describes this object by kind and name,
    /// and the dependent can refer to it.
    pub(crate) fn is_owner_of(&self, dependent: &Self, owner: &OwnerReference) -> bool {
        is_of(owner, &self.kind) && self.meta.name == owner.name && self.is_in_reach_of(dependent)
    }

    /// Returns true if a dependent can refer to this object: it has no namespace, or the same one.
    pub(crate) fn is_in_reach_of(&self, dependent: &Self) -> bool {
        !self.kind.is_namespaced() || self.meta.namespace == dependent.meta.namespace
    }

    /// Returns true if the object is being deleted in the foreground and waits for its dependents.
    pub(crate) fn awaits_dependents(&self) -> bool {
        self.is_deleting() && self.has(FOREGROUND)
    }

    /// Returns true if the object is being deleted and its dependents must be orphaned.
    pub(crate) fn is_orphaning(&self) -> bool {
        self.is_deleting() && self.has(ORPHAN)
    }

    fn owner(&self, uid: &str) -> Option<&OwnerReference> {
        self.meta
            .owner_references
            .iter()
            .find(|owner| owner.uid == uid)
    }
}

/// All known objects by UID, and the dependents of each owner.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: HashMap<String, Node>,
    dependents: HashMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Adds or updates an object. Returns the UIDs to reconcile.
    pub(crate) fn put(&mut self, node: Node) -> Vec<String> {
        let uid = node.meta.uid.clone();
        let mut affected = Vec::new();
        let before = self.nodes.remove(&uid);
        if let Some(before) = &before {
            self.unlink(before);
        }
        for owner in &node.meta.owner_references {
            self.dependents
                .entry(owner.uid.clone())
                .or_default()
                .insert(uid.clone());
        }
        let owned = !node.meta.owner_references.is_empty();
        let known = before.as_ref();
        let unchanged = known.is_some_and(|before| {
            before.meta.owner_references == node.meta.owner_references
                && before.meta.finalizers == node.meta.finalizers
                && before.meta.deletion_timestamp == node.meta.deletion_timestamp
        });
        if !unchanged {
            if owned || node.awaits_dependents() || node.is_orphaning() {
                affected.push(uid.clone());
            }
            if let Some(before) = known {
                // An owner may have waited for this dependent.
                affected.extend(
                    before
                        .meta
                        .owner_references
                        .iter()
                        .map(|owner| owner.uid.clone()),
                );
            }
        }
        self.nodes.insert(uid, node);
        affected
    }

    /// Removes an object. Returns the UIDs to reconcile: its dependents and its
    /// owners.
    pub(crate) fn remove(&mut self, uid: &str) -> Vec<String> {
        let Some(node) = self.nodes.remove(uid) else {
            return Vec::new();
        };
        self.unlink(&node);
        let owners = node
            .meta
            .owner_references
            .iter()
            .map(|owner| owner.uid.clone());
        self.dependents
            .get(uid)
            .into_iter()
            .flatten()
            .cloned()
            .chain(owners)
            .collect()
    }

    fn unlink(&mut self, node: &Node) {
        for owner in &node.meta.owner_references {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(&node.meta.uid);
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
    }

    /// Returns an object.
    pub(crate) fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// Returns the UIDs of the objects that satisfy a predicate.
    pub(crate) fn uids(&self, holds: impl Fn(&Node) -> bool) -> Vec<String> {
        let nodes = self.nodes.iter().filter(|(_, node)| holds(node));
        nodes.map(|(uid, _)| uid.clone()).collect()
    }

    /// Returns the objects that have `uid` as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Node> {
        let uids = self.dependents.get(uid).into_iter().flatten();
        uids.filter_map(|uid| self.nodes.get(uid))
    }

    /// Returns the state of an object's dependents.
    pub(crate) fn state_of_dependents(&self, uid: &str) -> Dependents {
        let mut state = Dependents::None;
        for node in self.dependents(uid) {
            if node.awaits_dependents() {
                return Dependents::Waiting;
            }
            state = Dependents::Some;
        }
        state
    }

    /// Returns the dependents that block the foreground deletion of `uid`.
    pub(crate) fn blocking(&self, uid: &str) -> Vec<&Node> {
        let blocks = |node: &&Node| {
            node.owner(uid)
                .is_some_and(|owner| owner.block_owner_deletion == Some(true))
        };
        self.dependents(uid).filter(blocks).collect()
    }
}

/// The dependents of an object that will be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dependents {
    /// The object has no dependents.
    None,
    /// The object has dependents.
    Some,
    /// A dependent is itself being deleted in the foreground, possibly in a cycle.
    Waiting,
}

/// The state of an owner after a request to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnerState {
    /// The owner exists, or its kind cannot be looked up.
    Solid,
    /// No object has the owner's UID.
    Absent,
    /// The owner is being deleted in the foreground and waits for this dependent.
    Waiting,
}

/// The action for an object with owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Keep the object unchanged.
    Keep,
    /// Keep the object, but remove these owners.
    RemoveOwners(Vec<String>),
    /// Delete the object.
    Delete(Propagation),
    /// Delete the object in the foreground, and stop its owners from waiting for it. The owners and
    /// a dependent wait for each other, so the whole cycle would remain otherwise.
    BreakCycle,
}

/// Decides what to do with an object from the states of its owners, in their order.
pub(crate) fn decide(node: &Node, owners: &[OwnerState], dependents: Dependents) -> Action {
    let references = &node.meta.owner_references;
    if node.is_deleting() || references.is_empty() {
        return Action::Keep;
    }
    if owners.contains(&OwnerState::Solid) {
        let absent = references
            .iter()
            .zip(owners)
            .filter(|(_, state)| **state != OwnerState::Solid);
        let absent: Vec<String> = absent.map(|(owner, _)| owner.uid.clone()).collect();
        return if absent.is_empty() {
            Action::Keep
        } else {
            Action::RemoveOwners(absent)
        };
    }
    if owners.contains(&OwnerState::Waiting) {
        match dependents {
            Dependents::None => {}
            Dependents::Some => return Action::Delete(Propagation::Foreground),
            Dependents::Waiting => return Action::BreakCycle,
        }
    }
    // A finalizer that was set before the deletion determines the propagation
    // policy.
    Action::Delete(if node.has(ORPHAN) {
        Propagation::Orphan
    } else if node.has(FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    })
}

/// Returns the owner references without the given owners.
pub(crate) fn without_owners(meta: &ObjectMeta, uids: &[String]) -> Vec<OwnerReference> {
    meta.owner_references
        .iter()
        .filter(|owner| !uids.contains(&owner.uid))
        .cloned()
        .collect()
}

/// Returns the owner references, changed so that no owner waits for the object.
pub(crate) fn unblocking_owners(meta: &ObjectMeta) -> Vec<OwnerReference> {
    let mut owners = meta.owner_references.clone();
    for owner in &mut owners {
        owner.block_owner_deletion = owner.block_owner_deletion.map(|_| false);
    }
    owners
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use longshore_model::kind::builtin;
    use serde_json::{Value, json};

    use super::*;

    fn node(uid: &str, owners: &[(&str, bool)], more: Value) -> Node {
        let owners: Vec<Value> = owners
            .iter()
            .map(|(uid, blocks)| {
                json!({"apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid,
                       "blockOwnerDeletion": blocks})
            })
            .collect();
        let mut meta =
            json!({"name": uid, "uid": uid, "namespace": "a", "ownerReferences": owners});
        meta.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let kind = Arc::new(builtin("", "ConfigMap").unwrap().clone());
        Node {
            kind,
            meta: serde_json::from_value(meta).unwrap(),
        }
    }

    fn deleting(finalizers: &[&str]) -> Value {
        json!({"deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": finalizers})
    }

    #[test]
    fn decisions() {
        use OwnerState::{Absent, Solid, Waiting};
        let remove_owners = |uids: &[&str]| {
            Action::RemoveOwners(uids.iter().map(|uid| (*uid).to_owned()).collect())
        };
        let one = || node("x", &[("o", true)], json!({}));
        let two = || node("x", &[("o", true), ("p", false)], json!({}));
        let table = [
            (
                node("x", &[], json!({})),
                vec![],
                Dependents::None,
                Action::Keep,
            ),
            (one(), vec![Solid], Dependents::None, Action::Keep),
            (
                one(),
                vec![Absent],
                Dependents::None,
                Action::Delete(Propagation::Background),
            ),
            (
                one(),
                vec![Absent],
                Dependents::Some,
                Action::Delete(Propagation::Background),
            ),
            (
                one(),
                vec![Waiting],
                Dependents::None,
                Action::Delete(Propagation::Background),
            ),
            (
                one(),
                vec![Waiting],
                Dependents::Some,
                Action::Delete(Propagation::Foreground),
            ),
            (
                one(),
                vec![Waiting],
                Dependents::Waiting,
                Action::BreakCycle,
            ),
            (
                one(),
                vec![Absent],
                Dependents::Waiting,
                Action::Delete(Propagation::Background),
            ),
            (
                two(),
                vec![Absent, Solid],
                Dependents::None,
                remove_owners(&["o"]),
            ),
            (
                two(),
                vec![Solid, Waiting],
                Dependents::None,
                remove_owners(&["p"]),
            ),
            (
                two(),
                vec![Absent, Absent],
                Dependents::None,
                Action::Delete(Propagation::Background),
            ),
            (
                node("x", &[("o", true)], json!({"finalizers": ["orphan"]})),
                vec![Absent],
                Dependents::Some,
                Action::Delete(Propagation::Orphan),
            ),
            (
                node(
                    "x",
                    &[("o", true)],
                    json!({"finalizers": ["foregroundDeletion"]}),
                ),
                vec![Absent],
                Dependents::Some,
                Action::Delete(Propagation::Foreground),
            ),
            (
                node("x", &[("o", true)], deleting(&["k"])),
                vec![Absent],
                Dependents::None,
                Action::Keep,
            ),
        ];
        for (node, owners, dependents, expected) in table {
            assert_eq!(decide(&node, &owners, dependents), expected, "{owners:?}");
        }
    }

    #[test]
    fn deleting_an_owner_queues_its_dependents() {
        let mut graph = Graph::default();
        assert!(graph.put(node("o", &[], json!({}))).is_empty());
        assert_eq!(graph.put(node("x", &[("o", true)], json!({}))), ["x"]);
        // No relevant field has changed, so nothing is reconciled.
        assert!(graph.put(node("x", &[("o", true)], json!({}))).is_empty());
        assert_eq!(graph.remove("o"), ["x"]);
        assert!(graph.remove("o").is_empty());
        assert_eq!(graph.dependents("o").count(), 1);
    }

    #[test]
    fn a_foreground_deletion_waits_for_blocking_dependents() {
        let mut graph = Graph::default();
        graph.put(node("x", &[("o", true)], json!({})));
        graph.put(node("y", &[("o", false)], json!({})));
        assert_eq!(graph.put(node("o", &[], deleting(&[FOREGROUND]))), ["o"]);
        assert!(graph.get("o").unwrap().awaits_dependents());
        let names = |nodes: Vec<&Node>| -> Vec<String> {
            nodes.iter().map(|node| node.meta.name.clone()).collect()
        };
        assert_eq!(names(graph.blocking("o")), ["x"]);
        // The dependent is deleted or loses its owner, so the owner is reconciled.
        assert_eq!(graph.put(node("x", &[], json!({}))), ["o"]);
        assert!(graph.blocking("o").is_empty());
        assert_eq!(graph.remove("y"), ["o"]);
        assert_eq!(graph.dependents("o").count(), 0);
    }

    #[test]
    fn only_the_given_owners_are_removed() {
        let node = node("x", &[("o", true), ("p", false)], json!({}));
        let left = without_owners(&node.meta, &["o".to_owned()]);
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].uid, "p");
    }
}
