//! The observed sets of one kind, and their pods. Pure.

use std::{collections::BTreeMap, sync::Arc};

use super::set::Set;
use crate::{
    key::Key,
    owned::{self, Parent},
    pod_facts::PodFacts,
};

/// The observed sets and pods of one kind of set.
pub(crate) type Store = owned::Store<Set>;

/// The observed state of a set.
pub(crate) struct Snapshot {
    pub(crate) set: Arc<Set>,
    /// The pods that the set owns, and the pods without a controller that it selects.
    pub(crate) pods: Vec<PodFacts>,
}

impl Parent for Set {
    fn key(&self) -> &Key {
        &self.key
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> Option<u64> {
        self.version.parse().ok()
    }

    fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selects(labels)
    }
}

impl Store {
    /// Returns the observed state of a set.
    pub(crate) fn snapshot(&self, key: &Key) -> Option<Snapshot> {
        let set = self.get(key)?.clone();
        let pods = self.pods_of(&set).map(|pod| PodFacts::clone(pod));
        Some(Snapshot {
            pods: pods.collect(),
            set,
        })
    }

    /// Returns the pods of all sets with the same controller as this set. Returns no pods if the
    /// set has no controller.
    pub(crate) fn related(&self, set: &Set) -> Vec<PodFacts> {
        let siblings = self.parents(&set.key.namespace);
        let siblings = siblings.filter(|other| set.owner.is_some() && other.owner == set.owner);
        let pods = siblings.flat_map(|other| self.owned_by(other));
        pods.map(|pod| PodFacts::clone(pod)).collect()
    }
}
