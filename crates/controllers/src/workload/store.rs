//! The observed workloads, pods and revisions, and responses of the server that the
//! watch has not reported yet. Pure.
//!
//! A created pod is known from the response, and an accepted deletion is remembered, so
//! that a stale cache does not lead to surplus pods.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use super::{
    kind::Workload,
    pod::{Owner, PodFacts},
};
use crate::{history::Revision, key::Key};

/// The observed workloads of one kind, with their pods and revisions.
#[derive(Debug)]
pub(crate) struct Store<W> {
    workloads: BTreeMap<Key, Arc<W>>,
    pods: HashMap<Key, Arc<PodFacts>>,
    /// The pods by the UID of their controller.
    owned: HashMap<String, BTreeSet<Key>>,
    /// The pods without a controller.
    orphans: BTreeSet<Key>,
    revisions: BTreeMap<Key, Arc<Revision>>,
    /// By the UID of a workload that is creating pods: the UIDs of pods that were
    /// deleted, possibly before the response to their creation arrived.
    deleted: HashMap<String, HashSet<String>>,
}

impl<W> Default for Store<W> {
    fn default() -> Self {
        Self {
            workloads: BTreeMap::new(),
            pods: HashMap::new(),
            owned: HashMap::new(),
            orphans: BTreeSet::new(),
            revisions: BTreeMap::new(),
            deleted: HashMap::new(),
        }
    }
}

/// The observed state of a workload.
pub(crate) struct Snapshot<W> {
    pub(crate) workload: Arc<W>,
    /// The pods that it owns, and pods without a controller.
    pub(crate) pods: Vec<Arc<PodFacts>>,
    /// The revisions of its namespace that it owns or that have no controller.
    pub(crate) revisions: Vec<Arc<Revision>>,
}

fn is_older(new: &str, known: &str) -> bool {
    let versions = new.parse::<u64>().ok().zip(known.parse::<u64>().ok());
    versions.is_some_and(|(new, known)| new < known)
}

fn in_namespace<'a, T>(
    map: &'a BTreeMap<Key, T>,
    namespace: &'a str,
) -> impl Iterator<Item = &'a T> + use<'a, T> {
    let entries = map.range(Key::new(namespace, "")..);
    let entries = entries.take_while(move |(key, _)| key.namespace == namespace);
    entries.map(|(_, value)| value)
}

impl<W: Workload> Store<W> {
    /// Stores a workload. An older version is ignored.
    pub(crate) fn put(&mut self, workload: W) {
        let meta = workload.meta();
        let known = self.workloads.get(&meta.key);
        let outdated = known.is_some_and(|known| {
            known.meta().uid == meta.uid && is_older(&meta.version, &known.meta().version)
        });
        if !outdated {
            let key = meta.key.clone();
            self.workloads.insert(key, Arc::new(workload));
        }
    }

    /// Stores a workload from a response. It is ignored if the workload has been deleted
    /// in the meantime.
    pub(crate) fn put_response(&mut self, workload: W) {
        let meta = workload.meta();
        let known = self.workloads.get(&meta.key);
        if known.is_some_and(|known| known.meta().uid == meta.uid) {
            self.put(workload);
        }
    }

    /// Removes a workload.
    pub(crate) fn remove(&mut self, key: &Key, uid: &str) {
        let known = self.workloads.get(key);
        if known.is_some_and(|known| known.meta().uid == uid) {
            self.workloads.remove(key);
        }
    }

    /// Returns the keys of all workloads.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.workloads.keys().cloned().collect()
    }

    /// Returns the workloads of a namespace.
    pub(crate) fn workloads<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<W>> + use<'a, W> {
        in_namespace(&self.workloads, namespace)
    }

    /// Stores a pod from the watch or a response. Returns the workloads to reconcile.
    pub(crate) fn put_pod(&mut self, mut pod: PodFacts) -> Vec<Key> {
        let known = self.pods.get(&pod.key);
        let known = known.filter(|known| known.uid == pod.uid);
        let before = known.and_then(|known| known.owner.clone());
        if let Some(known) = known {
            let versions = pod.version.zip(known.version);
            if versions.is_some_and(|(new, known)| new < known) {
                return self.affected(&pod);
            }
            // The deletion was requested, but the watch has not reported it yet.
            pod.deleting |= known.deleting;
        }
        let key = pod.key.clone();
        self.forget(&key);
        let mut affected = self.affected(&pod);
        if let Some(before) = before.filter(|before| pod.owner.as_ref() != Some(before)) {
            affected.extend(self.workload_of(&key.namespace, &before));
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

    /// Removes a pod that was deleted or belongs to another kind. Returns the workloads
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
        let workload = owner.and_then(|owner| self.workload_of(&key.namespace, &owner));
        workload.into_iter().collect()
    }

    fn forget(&mut self, key: &Key) {
        self.orphans.remove(key);
        let Some(owner) = self.pods.remove(key).and_then(|pod| pod.owner.clone()) else {
            return;
        };
        if let Some(owned) = self.owned.get_mut(&owner.uid) {
            owned.remove(key);
            if owned.is_empty() {
                self.owned.remove(&owner.uid);
            }
        }
    }

    /// Returns the workloads affected by a pod: its owner, or all that select it.
    fn affected(&self, pod: &PodFacts) -> Vec<Key> {
        match &pod.owner {
            Some(owner) => {
                let workload = self.workload_of(&pod.key.namespace, owner);
                workload.into_iter().collect()
            }
            None => self
                .workloads(&pod.key.namespace)
                .filter(|workload| workload.meta().selects(&pod.labels))
                .map(|workload| workload.meta().key.clone())
                .collect(),
        }
    }

    fn workload_of(&self, namespace: &str, owner: &Owner) -> Option<Key> {
        let key = Key::new(namespace, &owner.name);
        let workload = self.workloads.get(&key);
        workload
            .is_some_and(|workload| workload.meta().uid == owner.uid)
            .then_some(key)
    }

    /// Records that pods of a workload are about to be created.
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

    /// Stores a revision from the watch or a response. Returns the workloads to
    /// reconcile.
    pub(crate) fn put_revision(&mut self, revision: Revision) -> Vec<Key> {
        let mut affected = self.affected_by(&revision);
        if let Some(known) = self.revisions.get(&revision.key)
            && known.uid == revision.uid
        {
            if is_older(&revision.version, &known.version) {
                return affected;
            }
            if known.owner != revision.owner {
                affected.extend(self.affected_by(known));
            }
        }
        let key = revision.key.clone();
        self.revisions.insert(key, Arc::new(revision));
        affected
    }

    /// Removes a revision that was deleted or belongs to another kind. Returns the
    /// workloads to reconcile.
    pub(crate) fn remove_revision(&mut self, key: &Key, uid: &str) -> Vec<Key> {
        let known = self.revisions.get(key).filter(|known| known.uid == uid);
        let Some(known) = known.cloned() else {
            return Vec::new();
        };
        self.revisions.remove(key);
        self.affected_by(&known)
    }

    fn affected_by(&self, revision: &Revision) -> Vec<Key> {
        let workloads = self.workloads(&revision.key.namespace);
        let affected = workloads.filter(|workload| match &revision.owner {
            Some((_, uid)) => *uid == workload.meta().uid,
            None => workload.meta().selects(&revision.labels),
        });
        affected
            .map(|workload| workload.meta().key.clone())
            .collect()
    }

    /// Returns the observed state of a workload.
    pub(crate) fn snapshot(&self, key: &Key) -> Option<Snapshot<W>> {
        let workload = self.workloads.get(key)?.clone();
        let meta = workload.meta();
        let owned = self.owned.get(&meta.uid).into_iter().flatten();
        let orphans = self.orphans.range(Key::new(&key.namespace, "")..);
        let orphans = orphans.take_while(|other| other.namespace == key.namespace);
        let pods = owned.chain(orphans).filter_map(|key| self.pods.get(key));
        let pods = pods.filter(|pod| pod.owner.is_some() || meta.selects(&pod.labels));
        let pods = pods.filter(|pod| pod.key.namespace == key.namespace);
        let revisions = in_namespace(&self.revisions, &key.namespace);
        let revisions = revisions
            .filter(|revision| revision.owner.is_none() || revision.is_owned_by(&meta.uid));
        Some(Snapshot {
            pods: pods.cloned().collect(),
            revisions: revisions.cloned().collect(),
            workload,
        })
    }
}
