//! The observed objects of a kind that owns pods, their pods, and responses of the server
//! that the watch has not reported yet. Pure.
//!
//! A created pod is known from the response, and an accepted deletion is remembered, so
//! that a stale cache does not lead to surplus pods.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use crate::{
    key::Key,
    pod_facts::{Owner, PodFacts},
};

/// An object that owns pods.
pub(crate) trait Parent {
    /// Namespace and name.
    fn key(&self) -> &Key;

    /// Uid.
    fn uid(&self) -> &str;

    /// The resourceVersion, if it is a number.
    fn version(&self) -> Option<u64>;

    /// Returns true if the object selects pods with these labels.
    fn selects(&self, labels: &BTreeMap<String, String>) -> bool;
}

/// The observed objects of one kind and their pods.
#[derive(Debug)]
pub(crate) struct Store<W> {
    parents: BTreeMap<Key, Arc<W>>,
    pods: HashMap<Key, Arc<PodFacts>>,
    /// The pods by the UID of their controller.
    owned: HashMap<String, BTreeSet<Key>>,
    /// The pods without a controller.
    orphans: BTreeSet<Key>,
    /// By the UID of an object that is creating pods, the UIDs of pods that were deleted in the
    /// meantime. The response to their creation may arrive later.
    deleted: HashMap<String, HashSet<String>>,
}

impl<W> Default for Store<W> {
    fn default() -> Self {
        Self {
            parents: BTreeMap::new(),
            pods: HashMap::new(),
            owned: HashMap::new(),
            orphans: BTreeSet::new(),
            deleted: HashMap::new(),
        }
    }
}

/// Returns true if a version is older than the known version of the same object.
pub(crate) fn is_older(new: Option<u64>, known: Option<u64>) -> bool {
    new.zip(known).is_some_and(|(new, known)| new < known)
}

/// Returns the entries of a namespace.
pub(crate) fn in_namespace<'a, T>(
    map: &'a BTreeMap<Key, T>,
    namespace: &'a str,
) -> impl Iterator<Item = &'a T> + use<'a, T> {
    let entries = map.range(Key::new(namespace, "")..);
    let entries = entries.take_while(move |(key, _)| key.namespace == namespace);
    entries.map(|(_, value)| value)
}

fn keys_in<'a>(keys: &'a BTreeSet<Key>, namespace: &'a str) -> impl Iterator<Item = &'a Key> {
    let keys = keys.range(Key::new(namespace, "")..);
    keys.take_while(move |key| key.namespace == namespace)
}

impl<W: Parent> Store<W> {
    /// Stores an object. An older version is ignored.
    pub(crate) fn put(&mut self, parent: W) {
        let known = self.parents.get(parent.key());
        let known = known.filter(|known| known.uid() == parent.uid());
        if !known.is_some_and(|known| is_older(parent.version(), known.version())) {
            self.parents.insert(parent.key().clone(), Arc::new(parent));
        }
    }

    /// Stores an object from a response. It is ignored if the object has been deleted in
    /// the meantime.
    pub(crate) fn put_response(&mut self, parent: W) {
        let known = self.parents.get(parent.key());
        if known.is_some_and(|known| known.uid() == parent.uid()) {
            self.put(parent);
        }
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, key: &Key, uid: &str) {
        let known = self.parents.get(key);
        if known.is_some_and(|known| known.uid() == uid) {
            self.parents.remove(key);
        }
    }

    /// Returns the keys of all objects.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.parents.keys().cloned().collect()
    }

    /// Returns an object.
    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<W>> {
        self.parents.get(key)
    }

    /// Returns the objects of a namespace.
    pub(crate) fn parents<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<W>> + use<'a, W> {
        in_namespace(&self.parents, namespace)
    }

    /// Stores a pod from the watch or a response. Returns the objects to reconcile.
    pub(crate) fn put_pod(&mut self, mut pod: PodFacts) -> Vec<Key> {
        let known = self.pods.get(&pod.key);
        let known = known.filter(|known| known.uid == pod.uid);
        let before = known.and_then(|known| known.owner.clone());
        if let Some(known) = known {
            if is_older(pod.version, known.version) {
                return self.affected(&pod);
            }
            // The deletion was requested, but the watch has not reported it yet.
            if known.deleting {
                pod.deleting = true;
            }
        }
        let key = pod.key.clone();
        self.forget(&key);
        let mut affected = self.affected(&pod);
        if let Some(before) = before.filter(|before| pod.owner.as_ref() != Some(before)) {
            affected.extend(self.parent_of(&key.namespace, &before));
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
        self.pods.insert(key, Arc::new(pod));
        affected
    }

    /// Stores a pod from a response. It is ignored if the pod has been deleted in the
    /// meantime.
    pub(crate) fn put_pod_response(&mut self, pod: PodFacts) {
        let known = self.pods.get(&pod.key);
        if known.is_some_and(|known| known.uid == pod.uid) {
            self.put_pod(pod);
        }
    }

    /// Removes a pod that was deleted or belongs to another kind. Returns the objects to
    /// reconcile.
    pub(crate) fn remove_pod(&mut self, key: &Key, uid: &str) -> Vec<Key> {
        for deleted in self.deleted.values_mut() {
            deleted.insert(uid.to_owned());
        }
        let known = self.pods.get(key).filter(|known| known.uid == uid);
        let owner = known.and_then(|known| known.owner.clone());
        if known.is_some() {
            self.forget(key);
        }
        let parent = owner.and_then(|owner| self.parent_of(&key.namespace, &owner));
        parent.into_iter().collect()
    }

    fn forget(&mut self, key: &Key) {
        self.orphans.remove(key);
        let pod = self.pods.remove(key);
        let Some(owner) = pod.as_ref().and_then(|pod| pod.owner.as_ref()) else {
            return;
        };
        if let Some(owned) = self.owned.get_mut(&owner.uid) {
            owned.remove(key);
            if owned.is_empty() {
                self.owned.remove(&owner.uid);
            }
        }
    }

    /// Returns the objects affected by a pod: its owner, or all that select it.
    fn affected(&self, pod: &PodFacts) -> Vec<Key> {
        let namespace = &pod.key.namespace;
        match &pod.owner {
            Some(owner) => self.parent_of(namespace, owner).into_iter().collect(),
            None => {
                let parents = self.parents(namespace);
                let parents = parents.filter(|parent| parent.selects(&pod.labels));
                parents.map(|parent| parent.key().clone()).collect()
            }
        }
    }

    fn parent_of(&self, namespace: &str, owner: &Owner) -> Option<Key> {
        let key = Key::new(namespace, &owner.name);
        let parent = self.parents.get(&key);
        let is_owner = parent.is_some_and(|parent| parent.uid() == owner.uid);
        is_owner.then_some(key)
    }

    /// Records that pods of an object are about to be created.
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
        if let Some(pod) = self.pods.get_mut(key).filter(|pod| pod.uid == uid) {
            Arc::make_mut(pod).deleting = true;
        }
    }

    /// Returns the pods that an object owns.
    pub(crate) fn owned_by<'a>(&'a self, parent: &'a W) -> impl Iterator<Item = &'a Arc<PodFacts>> {
        let keys = self.owned.get(parent.uid()).into_iter();
        let keys = keys.flat_map(|keys| keys_in(keys, &parent.key().namespace));
        keys.filter_map(|key| self.pods.get(key))
    }

    /// Returns the pods that an object owns, and those without a controller that it
    /// selects.
    pub(crate) fn pods_of<'a>(&'a self, parent: &'a W) -> impl Iterator<Item = &'a Arc<PodFacts>> {
        let orphans = keys_in(&self.orphans, &parent.key().namespace);
        let orphans = orphans.filter_map(|key| self.pods.get(key));
        let orphans = orphans.filter(|pod| parent.selects(&pod.labels));
        self.owned_by(parent).chain(orphans)
    }
}
