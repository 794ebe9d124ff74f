//! Who depends on whom, and what is to become of an object. Pure.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use longshore_client::{KindInfo, ObjectMeta, OwnerReference, Propagation};

/// Finalizer: dependents go first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer: dependents stay and lose their owner.
pub(crate) const ORPHAN: &str = "orphan";

/// An object, as far as garbage collection goes.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// Its kind.
    pub(crate) kind: Arc<KindInfo>,
    /// Its metadata without labels and annotations.
    pub(crate) meta: ObjectMeta,
}

impl Node {
    /// Deletion has begun.
    pub(crate) fn is_deleting(&self) -> bool {
        self.meta.deletion_timestamp.is_some()
    }

    fn has(&self, finalizer: &str) -> bool {
        self.meta.finalizers.iter().any(|name| name == finalizer)
    }

    /// It is going and waits for its dependents to go.
    pub(crate) fn awaits_dependents(&self) -> bool {
        self.is_deleting() && self.has(FOREGROUND)
    }

    /// It is going and its dependents are to stay.
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

/// All objects known, by uid, and the dependents of every owner.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: HashMap<String, Node>,
    dependents: HashMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Adds or renews an object. Returns the uids to look at.
    pub(crate) fn put(&mut self, node: Node) -> Vec<String> {
        let uid = node.meta.uid.clone();
        let mut look = Vec::new();
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
                look.push(uid.clone());
            }
            if let Some(before) = known {
                // An owner that waited for this dependent may go now.
                look.extend(
                    before
                        .meta
                        .owner_references
                        .iter()
                        .map(|owner| owner.uid.clone()),
                );
            }
        }
        self.nodes.insert(uid, node);
        look
    }

    /// Takes an object away. Returns the uids to look at: its dependents and
    /// its owners.
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

    /// An object.
    pub(crate) fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// The uids of the objects of which this holds.
    pub(crate) fn uids(&self, holds: impl Fn(&Node) -> bool) -> Vec<String> {
        let nodes = self.nodes.iter().filter(|(_, node)| holds(node));
        nodes.map(|(uid, _)| uid.clone()).collect()
    }

    /// The objects that name `uid` as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Node> {
        let uids = self.dependents.get(uid).into_iter().flatten();
        uids.filter_map(|uid| self.nodes.get(uid))
    }

    /// Whether an object has dependents, and whether they wait for theirs.
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

    /// The dependents that a foreground deletion of `uid` waits for.
    pub(crate) fn blocking(&self, uid: &str) -> Vec<&Node> {
        let blocks = |node: &&Node| {
            node.owner(uid)
                .is_some_and(|owner| owner.block_owner_deletion == Some(true))
        };
        self.dependents(uid).filter(blocks).collect()
    }
}

/// The dependents of an object that is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dependents {
    /// There are none.
    None,
    /// There are some.
    Some,
    /// One of them is going in the foreground itself: perhaps a circle.
    Waiting,
}

/// What is known of an owner after looking at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnerState {
    /// It is there, or it is of a kind that cannot be looked up.
    Solid,
    /// It is gone: no object with its uid.
    Gone,
    /// It is going in the foreground and waits for this dependent.
    Waiting,
}

/// What is to become of an object with owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It stays as it is.
    Keep,
    /// It stays, without these owners.
    Strip(Vec<String>),
    /// It goes.
    Delete(Propagation),
    /// Its owners and a dependent wait: it goes in the foreground, and its owners must not
    /// wait for it any more, or none of a circle would ever go.
    BreakCircle,
}

/// Decides an object's fate from the states of its owners, in their order.
pub(crate) fn fate(node: &Node, owners: &[OwnerState], dependents: Dependents) -> Fate {
    let references = &node.meta.owner_references;
    if node.is_deleting() || references.is_empty() {
        return Fate::Keep;
    }
    if owners.contains(&OwnerState::Solid) {
        let lost = references
            .iter()
            .zip(owners)
            .filter(|(_, state)| **state != OwnerState::Solid);
        let lost: Vec<String> = lost.map(|(owner, _)| owner.uid.clone()).collect();
        return if lost.is_empty() {
            Fate::Keep
        } else {
            Fate::Strip(lost)
        };
    }
    if owners.contains(&OwnerState::Waiting) {
        match dependents {
            Dependents::None => {}
            Dependents::Some => return Fate::Delete(Propagation::Foreground),
            Dependents::Waiting => return Fate::BreakCircle,
        }
    }
    // A finalizer set before the deletion says how it is wished.
    Fate::Delete(if node.has(ORPHAN) {
        Propagation::Orphan
    } else if node.has(FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    })
}

/// The metadata without the owners named.
pub(crate) fn without_owners(meta: &ObjectMeta, uids: &[String]) -> Vec<OwnerReference> {
    meta.owner_references
        .iter()
        .filter(|owner| !uids.contains(&owner.uid))
        .cloned()
        .collect()
}

/// The owners, none of which is to wait for the object.
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
    fn fates() {
        use OwnerState::{Gone, Solid, Waiting};
        let strip = |uids: &[&str]| Fate::Strip(uids.iter().map(|uid| (*uid).to_owned()).collect());
        let one = || node("x", &[("o", true)], json!({}));
        let two = || node("x", &[("o", true), ("p", false)], json!({}));
        let table = [
            (
                node("x", &[], json!({})),
                vec![],
                Dependents::None,
                Fate::Keep,
            ),
            (one(), vec![Solid], Dependents::None, Fate::Keep),
            (
                one(),
                vec![Gone],
                Dependents::None,
                Fate::Delete(Propagation::Background),
            ),
            (
                one(),
                vec![Gone],
                Dependents::Some,
                Fate::Delete(Propagation::Background),
            ),
            (
                one(),
                vec![Waiting],
                Dependents::None,
                Fate::Delete(Propagation::Background),
            ),
            (
                one(),
                vec![Waiting],
                Dependents::Some,
                Fate::Delete(Propagation::Foreground),
            ),
            (one(), vec![Waiting], Dependents::Waiting, Fate::BreakCircle),
            (
                one(),
                vec![Gone],
                Dependents::Waiting,
                Fate::Delete(Propagation::Background),
            ),
            (two(), vec![Gone, Solid], Dependents::None, strip(&["o"])),
            (two(), vec![Solid, Waiting], Dependents::None, strip(&["p"])),
            (
                two(),
                vec![Gone, Gone],
                Dependents::None,
                Fate::Delete(Propagation::Background),
            ),
            (
                node("x", &[("o", true)], json!({"finalizers": ["orphan"]})),
                vec![Gone],
                Dependents::Some,
                Fate::Delete(Propagation::Orphan),
            ),
            (
                node(
                    "x",
                    &[("o", true)],
                    json!({"finalizers": ["foregroundDeletion"]}),
                ),
                vec![Gone],
                Dependents::Some,
                Fate::Delete(Propagation::Foreground),
            ),
            (
                node("x", &[("o", true)], deleting(&["k"])),
                vec![Gone],
                Dependents::None,
                Fate::Keep,
            ),
        ];
        for (node, owners, dependents, expected) in table {
            assert_eq!(fate(&node, &owners, dependents), expected, "{owners:?}");
        }
    }

    #[test]
    fn an_owner_that_goes_wakes_its_dependents() {
        let mut graph = Graph::default();
        assert!(graph.put(node("o", &[], json!({}))).is_empty());
        assert_eq!(graph.put(node("x", &[("o", true)], json!({}))), ["x"]);
        // Nothing of interest has changed: nothing to look at.
        assert!(graph.put(node("x", &[("o", true)], json!({}))).is_empty());
        assert_eq!(graph.remove("o"), ["x"]);
        assert!(graph.remove("o").is_empty());
        assert_eq!(graph.dependents("o").count(), 1);
    }

    #[test]
    fn a_foreground_deletion_waits_for_the_blocking_dependents() {
        let mut graph = Graph::default();
        graph.put(node("x", &[("o", true)], json!({})));
        graph.put(node("y", &[("o", false)], json!({})));
        assert_eq!(graph.put(node("o", &[], deleting(&[FOREGROUND]))), ["o"]);
        assert!(graph.get("o").unwrap().awaits_dependents());
        let names = |nodes: Vec<&Node>| -> Vec<String> {
            nodes.iter().map(|node| node.meta.name.clone()).collect()
        };
        assert_eq!(names(graph.blocking("o")), ["x"]);
        // The dependent goes, or drops its owner: the owner is looked at.
        assert_eq!(graph.put(node("x", &[], json!({}))), ["o"]);
        assert!(graph.blocking("o").is_empty());
        assert_eq!(graph.remove("y"), ["o"]);
        assert_eq!(graph.dependents("o").count(), 0);
    }

    #[test]
    fn strips_only_the_owners_named() {
        let node = node("x", &[("o", true), ("p", false)], json!({}));
        let left = without_owners(&node.meta, &["o".to_owned()]);
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].uid, "p");
    }
}
