//! The observed sets and pods, and responses of the server that the watch has not
//! reported yet. Pure.
//!
//! A created pod is known from the response, and an accepted deletion is
//! remembered, so that a stale cache does not lead to surplus pods.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use super::{
    facts::{Owner, PodFacts},
    set::Set,
};
use crate::key::Key;

/// The observed sets and pods of one kind of set.
#[derive(Debug, Default)]
pub(crate) struct Store {
    sets: BTreeMap<Key, Arc<Set>>,
    pods: HashMap<Key, PodFacts>,
    /// The pods by the UID of their controller.
    owned: HashMap<String, BTreeSet<Key>>,
    /// The pods without a controller, by namespace and name.
    orphans: BTreeSet<Key>,
    /// By the UID of a set that is creating pods: the UIDs of pods that were
    /// deleted, possibly before the response to their creation arrived.
    deleted: HashMap<String, HashSet<String>>,
}

/// The observed state of a set.
pub(crate) struct Snapshot {
    pub(crate) set: Arc<Set>,
    /// The pods that it owns, and pods without a controller.
    pub(crate) pods: Vec<PodFacts>,
}

fn is_older(new: Option<u64>, known: Option<u64>) -> bool {
    new.zip(known).is_some_and(|(new, known)| new < known)
}

fn in_namespace<'a>(keys: &'a BTreeSet<Key>, namespace: &'a str) -> impl Iterator<Item = &'a Key> {
    let keys = keys.range(Key::new(namespace, "")..);
    keys.take_while(move |key| key.namespace == namespace)
}

impl Store {
    /// Stores a set. An older version is ignored.
    pub(crate) fn put_set(&mut self, set: Set) {
        let version = |set: &Set| set.version.parse().ok();
        let known = self.sets.get(&set.key);
        let known = known.filter(|known| known.uid == set.uid);
        if !known.is_some_and(|known| is_older(version(&set), version(known))) {
            self.sets.insert(set.key.clone(), Arc::new(set));
        }
    }

    /// Stores a set from a response. It is ignored if the set has been deleted in
    /// the meantime.
    pub(crate) fn put_set_response(&mut self, set: Set) {
        let known = self.sets.get(&set.key);
        if known.is_some_and(|known| known.uid == set.uid) {
            self.put_set(set);
        }
    }

    /// Removes a set.
    pub(crate) fn remove_set(&mut self, key: &Key, uid: &str) {
        if self.sets.get(key).is_some_and(|known| known.uid == uid) {
            self.sets.remove(key);
        }
    }

    /// Stores a pod from the watch or a response. Returns the sets to reconcile.
    pub(crate) fn put_pod(&mut self, mut pod: PodFacts) -> Vec<Key> {
        let key = Key::new(&pod.namespace, &pod.name);
        let known = self.pods.get(&key);
        let known = known.filter(|known| known.uid == pod.uid);
        let before = known.and_then(|known| known.owner.clone());
        if let Some(known) = known {
            if is_older(pod.version, known.version) {
                return self.affected(&pod);
            }
            // The deletion was requested, but the watch has not reported it yet.
            pod.deleting |= known.deleting;
        }
        self.forget(&key);
        let mut affected = self.affected(&pod);
        if let Some(before) = before.filter(|before| pod.owner.as_ref() != Some(before)) {
            affected.extend(self.set_of(&pod.namespace, &before));
        }
        match &pod.owner {
            Some(owner) => {
                let owned = self.owned.entry(owner.uid.clone()).or_default();
                owned.insert(key.clone());
            }
            None => {
                self.orphans.insert(key.clone());
            }
        }
        self.pods.insert(key, pod);
        affected
    }

    /// Stores a pod from a response. It is ignored if the pod has been deleted in
    /// the meantime.
    pub(crate) fn put_pod_response(&mut self, pod: PodFacts) {
        let known = self.pods.get(&Key::new(&pod.namespace, &pod.name));
        if known.is_some_and(|known| known.uid == pod.uid) {
            self.put_pod(pod);
        }
    }

    /// Removes a pod that was deleted or belongs to another kind. Returns the sets
    /// to reconcile.
    pub(crate) fn remove_pod(&mut self, key: &Key, uid: &str) -> Vec<Key> {
        for deleted in self.deleted.values_mut() {
            deleted.insert(uid.to_owned());
        }
        let known = self.pods.get(key).filter(|known| known.uid == uid);
        let owner = known.and_then(|known| known.owner.clone());
        if known.is_some() {
            self.forget(key);
        }
        let set = owner.and_then(|owner| self.set_of(&key.namespace, &owner));
        set.into_iter().collect()
    }

    fn forget(&mut self, key: &Key) {
        self.orphans.remove(key);
        let Some(owner) = self.pods.remove(key).and_then(|pod| pod.owner) else {
            return;
        };
        if let Some(owned) = self.owned.get_mut(&owner.uid) {
            owned.remove(key);
            if owned.is_empty() {
                self.owned.remove(&owner.uid);
            }
        }
    }

    /// Returns the sets affected by a pod: its owner, or all that select it.
    fn affected(&self, pod: &PodFacts) -> Vec<Key> {
        match &pod.owner {
            Some(owner) => {
                let set = self.set_of(&pod.namespace, owner);
                set.into_iter().collect()
            }
            None => {
                let sets = self.sets(&pod.namespace);
                let sets = sets.filter(|set| set.selects(&pod.labels));
                sets.map(|set| set.key.clone()).collect()
            }
        }
    }

    fn sets<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<Set>> {
        let sets = self.sets.range(Key::new(namespace, "")..);
        let sets = sets.take_while(move |(key, _)| key.namespace == namespace);
        sets.map(|(_, set)| set)
    }

    fn set_of(&self, namespace: &str, owner: &Owner) -> Option<Key> {
        let key = Key::new(namespace, &owner.name);
        let set = self.sets.get(&key);
        set.is_some_and(|set| set.uid == owner.uid).then_some(key)
    }

    /// Records that pods of a set are about to be created.
    pub(crate) fn begin_creating(&mut self, uid: &str) {
        self.deleted.insert(uid.to_owned(), HashSet::new());
    }

    /// Records that a pod has been created.
    pub(crate) fn created(&mut self, uid: &str, pod: PodFacts) {
        let deleted = self.deleted.get(uid);
        if !deleted.is_some_and(|deleted| deleted.contains(&pod.uid)) {
            self.put_pod(pod);
        }
    }

    /// Records that all responses have arrived.
    pub(crate) fn end_creating(&mut self, uid: &str) {
        self.deleted.remove(uid);
    }

    /// Marks a pod whose deletion the server has accepted.
    pub(crate) fn mark_deleting(&mut self, key: &Key, uid: &str) {
        if let Some(pod) = self.pods.get_mut(key)
            && pod.uid == uid
        {
            pod.deleting = true;
        }
    }

    fn owned_by<'a>(
        &'a self,
        namespace: &'a str,
        uid: &str,
    ) -> impl Iterator<Item = &'a PodFacts> + use<'a> {
        let keys = self.owned.get(uid).into_iter();
        let keys = keys.flat_map(move |keys| in_namespace(keys, namespace));
        keys.filter_map(|key| self.pods.get(key))
    }

    /// Returns the observed state of a set.
    pub(crate) fn snapshot(&self, key: &Key) -> Option<Snapshot> {
        let set = self.sets.get(key)?.clone();
        let orphans = in_namespace(&self.orphans, &key.namespace);
        let orphans = orphans.filter_map(|key| self.pods.get(key));
        let owned = self.owned_by(&key.namespace, &set.uid);
        let pods = owned.chain(orphans.filter(|pod| set.selects(&pod.labels)));
        Some(Snapshot {
            pods: pods.cloned().collect(),
            set,
        })
    }

    /// Returns the pods of all sets with the same controller as this set; none if
    /// it has no controller.
    pub(crate) fn related(&self, set: &Set) -> Vec<PodFacts> {
        let siblings = self.sets(&set.key.namespace);
        let siblings = siblings.filter(|other| set.owner.is_some() && other.owner == set.owner);
        let pods = siblings.flat_map(|other| self.owned_by(&set.key.namespace, &other.uid));
        pods.cloned().collect()
    }
}
