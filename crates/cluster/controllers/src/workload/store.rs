//! The observed workloads of one kind, with their pods and revisions. Pure.

use std::{collections::BTreeMap, sync::Arc};

use super::kind::Workload;
use crate::{
    history::Revision,
    key::Key,
    owned::{self, Parent, in_namespace, is_older},
    pod_facts::PodFacts,
};

/// The observed workloads of one kind, with their pods and revisions.
#[derive(Debug)]
pub(crate) struct Store<W> {
    /// The workloads and their pods.
    pub(crate) owned: owned::Store<W>,
    revisions: BTreeMap<Key, Arc<Revision>>,
}

impl<W> Default for Store<W> {
    fn default() -> Self {
        Self {
            owned: owned::Store::default(),
            revisions: BTreeMap::new(),
        }
    }
}

/// The observed state of a workload.
pub(crate) struct Snapshot<W> {
    pub(crate) workload: Arc<W>,
    /// The pods that the workload owns, and the pods without a controller that it selects.
    pub(crate) pods: Vec<Arc<PodFacts>>,
    /// The revisions in its namespace that the workload owns or that have no controller.
    pub(crate) revisions: Vec<Arc<Revision>>,
}

impl<W: Workload> Parent for W {
    fn key(&self) -> &Key {
        &self.meta().key
    }

    fn uid(&self) -> &str {
        &self.meta().uid
    }

    fn version(&self) -> Option<u64> {
        self.meta().version.parse().ok()
    }

    fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.meta().selects(labels)
    }
}

fn version(revision: &Revision) -> Option<u64> {
    revision.version.parse().ok()
}

impl<W: Workload> Store<W> {
    /// Stores a revision from the watch or a response. Returns the workloads to
    /// reconcile.
    pub(crate) fn put_revision(&mut self, revision: Revision) -> Vec<Key> {
        let mut affected = self.affected_by(&revision);
        if let Some(known) = self.revisions.get(&revision.key)
            && known.uid == revision.uid
        {
            if is_older(version(&revision), version(known)) {
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
        let workloads = self.owned.parents(&revision.key.namespace);
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
        let workload = self.owned.get(key)?.clone();
        let uid = &workload.meta().uid;
        let revisions = in_namespace(&self.revisions, &key.namespace);
        let revisions =
            revisions.filter(|revision| revision.owner.is_none() || revision.is_owned_by(uid));
        Some(Snapshot {
            pods: self.owned.pods_of(&workload).cloned().collect(),
            revisions: revisions.cloned().collect(),
            workload,
        })
    }
}
