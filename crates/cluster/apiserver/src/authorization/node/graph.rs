//! The objects that each node uses: through its pods, and Secrets also through the volumes that are
//! bound to claims of its pods. Pure.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{pod::PodUse, target::Target, volume::Volume};

/// A pod that is bound to a node.
#[derive(Debug)]
struct Pod {
    node: Box<str>,
    targets: Vec<Arc<Target>>,
}

/// The relations between nodes and objects.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// By namespace and name.
    pods: HashMap<(Box<str>, Box<str>), Pod>,
    /// For each object, the number of pods that use it, by node.
    nodes_of: HashMap<Arc<Target>, HashMap<Box<str>, usize>>,
    volumes: HashMap<Box<str>, Volume>,
    /// The volumes that use a Secret.
    volumes_of: HashMap<Target, HashSet<Box<str>>>,
}

impl Graph {
    /// Returns true if a node uses an object.
    pub(super) fn is_used(&self, node: &str, target: &Target) -> bool {
        if self.is_used_by_pods(node, target) {
            return true;
        }
        // Few volumes share a Secret, compared to the number of pods.
        let volumes = self.volumes_of.get(target).into_iter().flatten();
        let mut volumes = volumes.filter_map(|name| self.volumes.get(name));
        volumes.any(|volume| self.is_used_by_pods(node, &volume.claim))
    }

    fn is_used_by_pods(&self, node: &str, target: &Target) -> bool {
        let nodes = self.nodes_of.get(target);
        nodes.is_some_and(|nodes| nodes.contains_key(node))
    }

    /// Sets the objects that a pod uses; `None` if it is deleted or not bound to a node.
    pub(super) fn set_pod(&mut self, namespace: &str, name: &str, pod: Option<PodUse>) {
        let key = (namespace.into(), name.into());
        if let (Some(known), Some(pod)) = (self.pods.get(&key), &pod) {
            let known_targets = known.targets.iter().map(|target| &**target);
            if *known.node == *pod.node && known_targets.eq(&pod.targets) {
                return;
            }
        }
        if let Some(last) = self.pods.remove(&key) {
            for target in last.targets {
                self.release(&target, &last.node);
            }
        }
        let Some(PodUse { node, targets }) = pod else {
            return;
        };
        let targets = targets.into_iter();
        let targets = targets.map(|target| self.acquire(target, &node)).collect();
        self.pods.insert(key, Pod { node, targets });
    }

    /// Counts a use of an object by a pod of a node.
    fn acquire(&mut self, target: Target, node: &str) -> Arc<Target> {
        // Pods share the targets, and most pods use the same objects.
        let target = match self.nodes_of.get_key_value(&target) {
            Some((known, _)) => known.clone(),
            None => Arc::new(target),
        };
        let nodes = self.nodes_of.entry(target.clone()).or_default();
        match nodes.get_mut(node) {
            Some(count) => *count = count.saturating_add(1),
            None => {
                nodes.insert(node.into(), 1);
            }
        }
        target
    }

    fn release(&mut self, target: &Arc<Target>, node: &str) {
        let Some(nodes) = self.nodes_of.get_mut(target) else {
            return;
        };
        match nodes.get_mut(node) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                nodes.remove(node);
            }
        }
        if nodes.is_empty() {
            self.nodes_of.remove(target);
        }
    }

    /// Sets the objects that a volume uses; `None` if it is deleted or not bound to a claim.
    pub(super) fn set_volume(&mut self, name: &str, volume: Option<Volume>) {
        if self.volumes.get(name) == volume.as_ref() {
            return;
        }
        if let Some(last) = self.volumes.remove(name) {
            for secret in &last.secrets {
                if let Some(volumes) = self.volumes_of.get_mut(secret) {
                    volumes.remove(name);
                    if volumes.is_empty() {
                        self.volumes_of.remove(secret);
                    }
                }
            }
        }
        let Some(volume) = volume else {
            return;
        };
        for secret in &volume.secrets {
            let volumes = self.volumes_of.entry(secret.clone()).or_default();
            volumes.insert(name.into());
        }
        self.volumes.insert(name.into(), volume);
    }

    pub(super) fn clear_pods(&mut self) {
        self.pods.clear();
        self.nodes_of.clear();
    }

    pub(super) fn clear_volumes(&mut self) {
        self.volumes.clear();
        self.volumes_of.clear();
    }

    /// Returns true if the graph is empty.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty()
            && self.nodes_of.is_empty()
            && self.volumes.is_empty()
            && self.volumes_of.is_empty()
    }
}
