//! The observed Deployments and ReplicaSets, and which ReplicaSets have pods. Pure.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{
    facts::{Deployment, ReplicaSet},
    hash::selects,
};
use crate::key::Key;

/// The observed Deployments, ReplicaSets and pods.
#[derive(Debug, Default)]
pub(crate) struct Store {
    deployments: BTreeMap<Key, Arc<Deployment>>,
    sets: BTreeMap<Key, Arc<ReplicaSet>>,
    /// The pods that have not ended: UID, and name and UID of their ReplicaSet.
    pods: HashMap<Key, (String, (String, String))>,
    running: HashMap<String, BTreeSet<Key>>,
}

/// The observed state of a Deployment.
pub(crate) struct Snapshot {
    pub(crate) deployment: Arc<Deployment>,
    /// The ReplicaSets that the Deployment owns and selects.
    pub(crate) owned: Vec<ReplicaSet>,
    /// The ReplicaSets without a controller that the Deployment selects.
    pub(crate) adopt: Vec<ReplicaSet>,
    /// The ReplicaSets that the Deployment owns and does not select.
    pub(crate) release: Vec<ReplicaSet>,
    /// The UIDs of ReplicaSets with pods that have not ended.
    pub(crate) running: Vec<String>,
}

fn is_older(new: &str, known: &str) -> bool {
    let versions = new.parse::<u64>().ok().zip(known.parse::<u64>().ok());
    versions.is_some_and(|(new, known)| new < known)
}

fn in_namespace<'a, T>(
    map: &'a BTreeMap<Key, T>,
    namespace: &'a str,
) -> impl Iterator<Item = &'a T> {
    let entries = map.range(Key::new(namespace, "")..);
    let entries = entries.take_while(move |(key, _)| key.namespace == namespace);
    entries.map(|(_, value)| value)
}

impl Store {
    /// Stores a Deployment. An older version is ignored.
    pub(crate) fn put(&mut self, deployment: Deployment) {
        let known = self.deployments.get(&deployment.key);
        let outdated = known.is_some_and(|known| {
            known.uid == deployment.uid && is_older(&deployment.version, &known.version)
        });
        if !outdated {
            let key = deployment.key.clone();
            self.deployments.insert(key, Arc::new(deployment));
        }
    }

    /// Stores a Deployment from a response. It is ignored if the Deployment has
    /// been deleted in the meantime.
    pub(crate) fn put_response(&mut self, deployment: Deployment) {
        let known = self.deployments.get(&deployment.key);
        if known.is_some_and(|known| known.uid == deployment.uid) {
            self.put(deployment);
        }
    }

    /// Removes a Deployment.
    pub(crate) fn remove(&mut self, key: &Key, uid: &str) {
        if self
            .deployments
            .get(key)
            .is_some_and(|known| known.uid == uid)
        {
            self.deployments.remove(key);
        }
    }

    /// Stores a ReplicaSet from the watch or from the response to its creation.
    /// Returns the Deployments to reconcile.
    pub(crate) fn put_set(&mut self, set: ReplicaSet) -> Vec<Key> {
        let mut affected = self.affected(&set);
        if let Some(known) = self.sets.get(&set.key)
            && known.uid == set.uid
        {
            if is_older(&set.version, &known.version) {
                return affected;
            }
            if known.owner != set.owner {
                affected.extend(self.affected(known));
            }
        }
        self.sets.insert(set.key.clone(), Arc::new(set));
        affected
    }

    /// Stores a ReplicaSet from a response. It is ignored if the ReplicaSet has
    /// been deleted in the meantime.
    pub(crate) fn put_set_response(&mut self, set: ReplicaSet) {
        let known = self.sets.get(&set.key);
        if known.is_some_and(|known| known.uid == set.uid) {
            self.put_set(set);
        }
    }

    /// Removes a ReplicaSet. Returns the Deployments to reconcile.
    pub(crate) fn remove_set(&mut self, key: &Key, uid: &str) -> Vec<Key> {
        let known = self.sets.get(key).filter(|known| known.uid == uid);
        let Some(known) = known.cloned() else {
            return Vec::new();
        };
        self.sets.remove(key);
        self.affected(&known)
    }

    /// Returns the Deployments affected by a ReplicaSet: its owner, or all that
    /// select it.
    fn affected(&self, set: &ReplicaSet) -> Vec<Key> {
        let deployments = in_namespace(&self.deployments, &set.key.namespace);
        let affected = deployments.filter(|deployment| match &set.owner {
            Some((_, uid)) => *uid == deployment.uid,
            None => selects(&deployment.selector, &set.labels),
        });
        affected.map(|deployment| deployment.key.clone()).collect()
    }

    /// Stores a pod: the name and UID of its ReplicaSet, or `None` if the pod has
    /// ended. Returns the Deployment that may have waited for the end of the pod.
    pub(crate) fn put_pod(
        &mut self,
        key: &Key,
        uid: &str,
        set: Option<(String, String)>,
    ) -> Option<Key> {
        let known = self.pods.get(key);
        if known.map(|(uid, set)| (uid.as_str(), set)) == set.as_ref().map(|set| (uid, set)) {
            return None;
        }
        let ended = self.pods.remove(key).map(|(_, set)| set);
        if let Some((_, set)) = &ended
            && let Some(pods) = self.running.get_mut(set)
        {
            pods.remove(key);
            if pods.is_empty() {
                self.running.remove(set);
            }
        }
        if let Some(set) = set {
            let pods = self.running.entry(set.1.clone()).or_default();
            pods.insert(key.clone());
            self.pods.insert(key.clone(), (uid.to_owned(), set));
        }
        let (name, uid) = ended?;
        let set = self.sets.get(&Key::new(&key.namespace, &name));
        let (owner, owner_uid) = set.filter(|set| set.uid == uid)?.owner.as_ref()?;
        let deployment = self.deployments.get(&Key::new(&key.namespace, owner))?;
        let waits = deployment.uid == *owner_uid && deployment.spec.strategy.is_recreate();
        waits.then(|| deployment.key.clone())
    }

    /// Returns the observed state of a Deployment. As in Kubernetes, a Deployment
    /// in deletion does not adopt or release ReplicaSets.
    pub(crate) fn snapshot(&self, key: &Key) -> Option<Snapshot> {
        let deployment = self.deployments.get(key)?.clone();
        let (mut owned, mut adopt, mut release) = (Vec::new(), Vec::new(), Vec::new());
        for set in in_namespace(&self.sets, &key.namespace) {
            let selected = selects(&deployment.selector, &set.labels);
            if set.is_owned_by(&deployment.uid) {
                if selected {
                    owned.push((**set).clone());
                } else if !deployment.deleting {
                    release.push((**set).clone());
                }
            } else if set.owner.is_none() && selected && !deployment.deleting && !set.deleting {
                adopt.push((**set).clone());
            }
        }
        let running = owned.iter().map(|set| &set.uid);
        let running = running.filter(|uid| self.running.contains_key(*uid));
        Some(Snapshot {
            running: running.cloned().collect(),
            deployment,
            owned,
            adopt,
            release,
        })
    }
}
