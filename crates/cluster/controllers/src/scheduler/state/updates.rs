//! Updates of the state by the scheduler's watches.

use k8s_openapi::api::core::v1::{Node, Pod};

use super::{
    super::{
        budget::Budget,
        choose::NodeFacts,
        known::{KnownPod, QueueKey},
    },
    NAME, State,
};
use crate::{
    key::Key,
    volumes::facts::{ClaimFacts, ClassFacts, VolumeFacts},
};

impl State {
    /// Stores a node. A change makes unschedulable pods eligible again.
    pub(crate) fn put_node(&mut self, node: &Node) {
        let facts = NodeFacts::of(node);
        let name = facts.name.clone();
        if self.nodes.get(&name) != Some(&facts) {
            self.nodes.insert(name, facts);
            self.retry_unschedulable();
        }
    }

    /// Removes a node. The messages of unschedulable pods may change.
    pub(crate) fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
        self.retry_unschedulable();
    }

    /// Stores a claim.
    pub(crate) fn put_claim(&mut self, claim: ClaimFacts) {
        self.storage.store.put_claim(claim);
        self.retry_claims();
    }

    /// Removes a claim.
    pub(crate) fn remove_claim(&mut self, key: &Key, uid: &str) {
        self.storage.store.remove_claim(key, uid);
        self.retry_claims();
    }

    /// Stores a volume.
    pub(crate) fn put_volume(&mut self, volume: VolumeFacts) {
        self.storage.put_volume(volume);
        self.retry_claims();
    }

    /// Removes a volume.
    pub(crate) fn remove_volume(&mut self, name: &str, uid: &str) {
        self.storage.store.remove_volume(name, uid);
        self.retry_claims();
    }

    /// Stores a class.
    pub(crate) fn put_class(&mut self, class: ClassFacts) {
        if self.storage.store.put_class(class) {
            self.retry_claims();
        }
    }

    /// Removes a class.
    pub(crate) fn remove_class(&mut self, name: &str) {
        self.storage.store.remove_class(name);
        self.retry_claims();
    }

    /// Stores a budget. Budgets matter only for the choice of victims.
    pub(crate) fn put_budget(&mut self, key: Key, budget: Option<Budget>) {
        match budget {
            Some(budget) => self.budgets.insert(key, budget),
            None => self.budgets.remove(&key),
        };
    }

    /// Makes unschedulable pods with claims eligible again.
    pub(super) fn retry_claims(&mut self) {
        self.storage_changed = true;
        let has_claims = |queue_key: &QueueKey| {
            let pod = self.pods.get(&queue_key.2);
            pod.is_some_and(|pod| !pod.needs.claims.is_empty())
        };
        let retried: Vec<QueueKey> = self
            .unschedulable
            .iter()
            .filter(|queue_key| has_claims(queue_key))
            .cloned()
            .collect();
        for queue_key in retried {
            self.unschedulable.remove(&queue_key);
            self.waiting.insert(queue_key);
        }
    }

    pub(super) fn retry_unschedulable(&mut self) {
        self.waiting.append(&mut self.unschedulable);
    }

    /// Stores a pod.
    pub(crate) fn put_pod(&mut self, key: Key, pod: &Pod) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let spec = pod.spec.as_ref();
        let status = pod.status.as_ref();
        let phase = status
            .and_then(|status| status.phase.as_deref())
            .unwrap_or_default();
        if matches!(phase, "Succeeded" | "Failed") {
            return self.remove_pod(&key, &uid);
        }
        let bound = spec
            .and_then(|spec| spec.node_name.clone())
            .filter(|node| !node.is_empty());
        let known = self.pods.get(&key).filter(|known| known.uid == uid);
        if known.is_some_and(|known| known.node.is_some()) && bound.is_none() {
            // The pod is being bound. The response or the watch will report the result.
            return;
        }
        let is_ours = spec
            .and_then(|spec| spec.scheduler_name.as_deref())
            .is_none_or(|name| name.is_empty() || name == NAME);
        let gated = spec
            .and_then(|spec| spec.scheduling_gates.as_deref())
            .is_some_and(|gates| !gates.is_empty());
        let wants_node = is_ours && !gated && pod.metadata.deletion_timestamp.is_none();
        let unschedulable =
            known.is_some_and(|known| self.unschedulable.contains(&known.queue_key));
        let mut new = KnownPod::of(&key, pod, bound.clone());
        // Other pods may have an affinity to the pod.
        let moves_others = bound.is_some()
            && known.is_none_or(|known| known.node != bound || known.labels != new.labels);
        let is_unchanged = known.is_some_and(|known| known.needs == new.needs);
        // A resize may free resources for other pods.
        let is_resized =
            bound.is_some() && known.is_some_and(|known| known.node == bound) && !is_unchanged;
        if let Some(known) = known {
            new.keep_decisions_of(known);
        }
        let condition_set = status
            .into_iter()
            .flat_map(|status| status.conditions.iter().flatten())
            .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
        let explained = known.and_then(|known| known.explained.clone()).or_else(|| {
            let condition =
                condition_set.filter(|c| c.reason.as_deref() == Some("Unschedulable"))?;
            let since = condition.last_transition_time.as_ref().map(|time| time.0);
            Some((condition.message.clone().unwrap_or_default(), since))
        });
        new.explained = explained;
        let had_nominated = self.nominated.contains(&key);
        self.forget(&key);
        let queue_key = new.queue_key.clone();
        if let Some(node) = &bound {
            self.occupy(node, &new);
        } else if wants_node {
            // A change of only the pod's status does not lead to another attempt.
            let list = if unschedulable && is_unchanged {
                &mut self.unschedulable
            } else {
                &mut self.waiting
            };
            list.insert(queue_key);
            if new.nominated.is_some() {
                self.nominated.insert(key.clone());
            }
        }
        if is_resized {
            self.retry_unschedulable();
        }
        if had_nominated && bound.is_none() && !self.nominated.contains(&key) {
            self.retry_unschedulable();
        }
        self.ruled += usize::from(new.rules.is_some());
        self.pods.insert(key, new);
        if moves_others {
            self.retry_ruled();
        }
    }

    /// Removes a pod that was deleted or has finished. Unschedulable pods can then use its
    /// resources.
    pub(crate) fn remove_pod(&mut self, key: &Key, uid: &str) {
        if self.pods.get(key).is_none_or(|known| known.uid != uid) {
            return;
        }
        // The resources of the pod's nomination are also free.
        let had_nominated = self.nominated.contains(key);
        if self.forget(key) || had_nominated {
            self.retry_unschedulable();
        }
    }

    /// Removes a pod. Returns true if the pod had a node.
    pub(super) fn forget(&mut self, key: &Key) -> bool {
        let Some(known) = self.pods.remove(key) else {
            return false;
        };
        self.ruled = self
            .ruled
            .saturating_sub(usize::from(known.rules.is_some()));
        self.waiting.remove(&known.queue_key);
        self.unschedulable.remove(&known.queue_key);
        self.awaiting.remove(key);
        self.nominated.remove(key);
        let Some(node) = &known.node else {
            return false;
        };
        self.vacate(node, &known);
        true
    }

    /// Adds a pod to the resources in use.
    pub(super) fn occupy(&mut self, node: &str, pod: &KnownPod) {
        let usage = self.usage.entry(node.to_owned()).or_default();
        usage.add(&pod.needs.load);
        *self.priorities.entry(pod.priority()).or_insert(0) += 1;
    }

    /// Removes a pod from the resources in use.
    pub(super) fn vacate(&mut self, node: &str, pod: &KnownPod) {
        if let Some(usage) = self.usage.get_mut(node) {
            usage.remove(&pod.needs.load);
            if usage.pods == 0 {
                self.usage.remove(node);
            }
        }
        if let Some(count) = self.priorities.get_mut(&pod.priority()) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.priorities.remove(&pod.priority());
            }
        }
    }
}
