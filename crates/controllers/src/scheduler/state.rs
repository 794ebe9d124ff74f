//! The scheduler's state: nodes, the resources in use on them, and pods that are
//! not scheduled. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};

use super::{
    budget::Budget,
    choose::{NodeFacts, Usage, choose, on_no_node},
    known::{Cleared, KnownPod, QueueKey, VictimPod},
    storage::{Progress, Storage, VolumeRequests},
};
use crate::{
    guard,
    key::Key,
    volumes::facts::{ClaimFacts, ClassFacts, VolumeFacts},
};

/// The default `schedulerName` of pods.
pub(super) const NAME: &str = "default-scheduler";

/// An action for a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Bind it to the node.
    Bind { key: Key, uid: String, node: String },
    /// Request the volumes of its claims on the node. It is bound when it has them.
    RequestVolumes {
        key: Key,
        uid: String,
        node: String,
        requests: VolumeRequests,
    },
    /// Report why it cannot be scheduled.
    Explain {
        key: Key,
        uid: String,
        message: String,
        /// When it was first found to be unschedulable.
        since: Option<Timestamp>,
    },
    /// Delete the victims to make room for the pod on the node, and nominate the node.
    Preempt {
        key: Key,
        uid: String,
        node: String,
        victims: Vec<VictimPod>,
        /// Pods that lose their nomination of the node.
        cleared: Vec<Cleared>,
        /// Why it cannot be scheduled now.
        message: String,
        /// When it was first found to be unschedulable.
        since: Option<Timestamp>,
    },
    /// Choosing a node panicked. Try again later.
    Panicked {
        key: Key,
        uid: String,
        panic: String,
    },
}

/// The scheduler's observed state.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(super) nodes: BTreeMap<String, NodeFacts>,
    pub(super) usage: HashMap<String, Usage>,
    pub(super) pods: HashMap<Key, KnownPod>,
    waiting: BTreeSet<QueueKey>,
    unschedulable: BTreeSet<QueueKey>,
    pub(super) storage: Storage,
    /// The pods without a node that have nominated one.
    pub(super) nominated: BTreeSet<Key>,
    /// The number of pods on nodes by priority.
    pub(super) priorities: BTreeMap<i32, usize>,
    pub(super) budgets: BTreeMap<Key, Budget>,
    /// The pods that wait for their volumes on a node.
    awaiting: BTreeSet<Key>,
    /// Whether claims or volumes have changed since `awaiting` was checked.
    storage_changed: bool,
}

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

    /// Stores a budget. It matters only for the choice of victims.
    pub(crate) fn put_budget(&mut self, key: Key, budget: Option<Budget>) {
        match budget {
            Some(budget) => self.budgets.insert(key, budget),
            None => self.budgets.remove(&key),
        };
    }

    /// Makes unschedulable pods with claims eligible again.
    fn retry_claims(&mut self) {
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

    fn retry_unschedulable(&mut self) {
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
            // The pod is being bound. The response or the watch will report the
            // result.
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
        let is_unchanged = known.is_some_and(|known| known.needs == new.needs);
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
            // A change of the pod's own status is no reason to try again.
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
        if had_nominated && bound.is_none() && !self.nominated.contains(&key) {
            self.retry_unschedulable();
        }
        self.pods.insert(key, new);
    }

    /// Removes a pod that was deleted or has finished. Its resources are free for
    /// unschedulable pods.
    pub(crate) fn remove_pod(&mut self, key: &Key, uid: &str) {
        if self.pods.get(key).is_none_or(|known| known.uid != uid) {
            return;
        }
        // The resources of its nomination are free, too.
        let had_nominated = self.nominated.contains(key);
        if self.forget(key) || had_nominated {
            self.retry_unschedulable();
        }
    }

    /// Removes a pod. Returns whether it had a node.
    fn forget(&mut self, key: &Key) -> bool {
        let Some(known) = self.pods.remove(key) else {
            return false;
        };
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
    fn occupy(&mut self, node: &str, pod: &KnownPod) {
        let usage = self.usage.entry(node.to_owned()).or_default();
        usage.add(&pod.needs.amounts);
        *self.priorities.entry(pod.priority()).or_insert(0) += 1;
    }

    /// Removes a pod from the resources in use.
    fn vacate(&mut self, node: &str, pod: &KnownPod) {
        if let Some(usage) = self.usage.get_mut(node) {
            usage.remove(&pod.needs.amounts);
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

    /// Returns the next decision; `None` if no pod waits.
    pub(crate) fn decide(&mut self) -> Option<Decision> {
        if let Some(decision) = self.next_with_volumes() {
            return Some(decision);
        }
        while let Some(queue_key) = self.waiting.pop_first() {
            let key = queue_key.2.clone();
            let choice = match guard::attempt(|| self.choose_node(&key)) {
                Ok(choice) => choice,
                Err(panic) => {
                    let Some(known) = self.pods.get(&key) else {
                        continue;
                    };
                    let uid = known.uid.clone();
                    return Some(Decision::Panicked { key, uid, panic });
                }
            };
            let Some(known) = self.pods.get_mut(&key) else {
                continue;
            };
            match choice {
                Ok((node, requests)) => {
                    known.node = Some(node.clone());
                    let uid = known.uid.clone();
                    let amounts = known.needs.amounts.clone();
                    let priority = known.priority();
                    self.usage.entry(node.clone()).or_default().add(&amounts);
                    *self.priorities.entry(priority).or_insert(0) += 1;
                    let is_elsewhere = known.nominated.as_ref() != Some(&node);
                    if self.nominated.remove(&key) && is_elsewhere {
                        self.waiting.append(&mut self.unschedulable);
                    }
                    let Some(requests) = requests else {
                        return Some(Decision::Bind { key, uid, node });
                    };
                    self.storage.reserve(&requests);
                    return Some(Decision::RequestVolumes {
                        key,
                        uid,
                        node,
                        requests,
                    });
                }
                Err(message) => {
                    self.unschedulable.insert(queue_key);
                    let before = known.explained.take();
                    let since = before.as_ref().and_then(|(_, since)| *since);
                    let is_new = before.is_none_or(|(before, _)| before != message);
                    known.explained = Some((message.clone(), since));
                    let uid = known.uid.clone();
                    let preemption = match guard::attempt(|| self.preempt(&key)) {
                        Ok(preemption) => preemption,
                        Err(panic) => return Some(Decision::Panicked { key, uid, panic }),
                    };
                    if let Some((node, victims)) = preemption {
                        let cleared = self.nominate(&key, &node, &victims);
                        if !cleared.is_empty() {
                            self.retry_unschedulable();
                        }
                        return Some(Decision::Preempt {
                            key,
                            uid,
                            node,
                            victims,
                            cleared,
                            message,
                            since,
                        });
                    }
                    if is_new {
                        return Some(Decision::Explain {
                            key,
                            uid,
                            message,
                            since,
                        });
                    }
                }
            }
        }
        None
    }

    /// Chooses a node for a pod. Returns the volumes to request first, if its
    /// claims are bound only after the choice.
    fn choose_node(&self, key: &Key) -> Result<(String, Option<VolumeRequests>), String> {
        let Some(known) = self.pods.get(key) else {
            return Err("the pod was deleted".to_owned());
        };
        let is_used = |claim: &str| {
            let mut others = self.pods.iter().filter(|(other, pod)| {
                other.namespace == key.namespace && *other != key && pod.node.is_some()
            });
            others.any(|(_, pod)| pod.needs.claims.iter().any(|used| used.name == claim))
        };
        let claims = &known.needs.claims;
        let claims = self.storage.claims(key, &known.uid, claims, is_used);
        let claims = claims.map_err(|reason| on_no_node(self.nodes.len(), &reason))?;
        let volumes = |node: &NodeFacts| self.storage.problems(&claims, &node.name, &node.labels);
        let nodes = self.nodes.values();
        let nodes = nodes.map(|node| (node, self.usage_for(&node.name, key, known)));
        let nominated = known.nominated.as_ref();
        let nominated = nominated.and_then(|node| self.nodes.get(node));
        let nominated = nominated.and_then(|node| {
            let usage = self.usage_for(&node.name, key, known);
            choose(&known.needs, [(node, usage)], volumes).ok()
        });
        let node = match nominated {
            Some(node) => node,
            None => choose(&known.needs, nodes, volumes)?,
        };
        if !claims.has_delayed() {
            return Ok((node.to_owned(), None));
        }
        let labels = self.nodes.get(node).map(|node| &node.labels);
        let requests = labels.and_then(|labels| self.storage.requests(&claims, node, labels));
        Ok((node.to_owned(), requests))
    }

    /// Returns the binding of a pod whose volumes are ready. A pod that has lost
    /// them is queued again.
    fn next_with_volumes(&mut self) -> Option<Decision> {
        if !self.storage_changed {
            return None;
        }
        for key in self.awaiting.clone() {
            let Some(known) = self.pods.get(&key) else {
                self.awaiting.remove(&key);
                continue;
            };
            let node = known.node.as_ref().and_then(|node| self.nodes.get(node));
            let progress = match node {
                Some(node) => {
                    let claims = &known.needs.claims;
                    self.storage
                        .progress(&key.namespace, claims, &node.name, &node.labels)
                }
                None => Progress::Lost,
            };
            let (uid, node) = (known.uid.clone(), known.node.clone());
            match (progress, node) {
                (Progress::Waiting, _) => {}
                (Progress::Bound, Some(node)) => {
                    self.awaiting.remove(&key);
                    return Some(Decision::Bind { key, uid, node });
                }
                (Progress::Bound | Progress::Lost, _) => {
                    self.awaiting.remove(&key);
                    self.unbind(&key, &uid);
                    self.retry(&key, &uid);
                }
            }
        }
        self.storage_changed = false;
        None
    }

    /// Records that the volumes of a pod have been requested.
    pub(crate) fn await_volumes(&mut self, key: &Key, uid: &str) {
        if self.pods.get(key).is_some_and(|known| known.uid == uid) {
            self.awaiting.insert(key.clone());
            self.storage_changed = true;
        }
    }

    /// Undoes reservations of volumes that failed.
    pub(crate) fn release(&mut self, requests: &VolumeRequests) {
        self.storage.release(requests);
        self.retry_claims();
    }

    /// Undoes a failed binding, so that other pods can use the resources.
    pub(crate) fn unbind(&mut self, key: &Key, uid: &str) {
        let Some(known) = self.pods.get_mut(key).filter(|known| known.uid == uid) else {
            return;
        };
        let Some(node) = known.node.take() else {
            return;
        };
        if known.nominated.is_some() {
            self.nominated.insert(key.clone());
        }
        let (amounts, priority) = (known.needs.amounts.clone(), known.priority());
        if let Some(usage) = self.usage.get_mut(&node) {
            usage.remove(&amounts);
        }
        if let Some(count) = self.priorities.get_mut(&priority) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.priorities.remove(&priority);
            }
        }
    }

    /// Queues a pod again after its binding or report failed.
    pub(crate) fn retry(&mut self, key: &Key, uid: &str) {
        let Some(known) = self.pods.get_mut(key).filter(|known| known.uid == uid) else {
            return;
        };
        if known.node.is_none() {
            known.explained = None;
            self.unschedulable.remove(&known.queue_key);
            self.waiting.insert(known.queue_key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    fn node(cpu: &str) -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "n"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}],
                       "allocatable": {"cpu": cpu, "memory": "1Gi", "pods": "10"}}
        }))
        .unwrap()
    }

    fn pod(cpu: &str, more: Value) -> Pod {
        let mut spec =
            json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]});
        spec.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(json!({"metadata": {"uid": "u"}, "spec": spec})).unwrap()
    }

    fn key(name: &str) -> Key {
        Key::new("a", name)
    }

    fn bound(decision: Option<Decision>) -> Option<String> {
        match decision? {
            Decision::Bind { key, .. } => Some(key.name),
            Decision::RequestVolumes { .. }
            | Decision::Explain { .. }
            | Decision::Preempt { .. }
            | Decision::Panicked { .. } => None,
        }
    }

    #[test]
    fn a_pending_binding_counts_as_used() {
        let mut state = State::default();
        state.put_node(&node("2"));
        state.put_pod(key("p"), &pod("1", json!({})));
        state.put_pod(key("q"), &pod("1", json!({})));
        state.put_pod(key("r"), &pod("1", json!({})));
        assert_eq!(bound(state.decide()).as_deref(), Some("p"));
        assert_eq!(bound(state.decide()).as_deref(), Some("q"));
        let message = "0/1 nodes are available: 1 Insufficient cpu.".to_owned();
        let explain = Decision::Explain {
            key: key("r"),
            uid: "u".into(),
            message,
            since: None,
        };
        assert_eq!(state.decide(), Some(explain));
        assert_eq!(state.decide(), None);
        // The watch still reports the old state of a pod that is being bound.
        state.put_pod(key("p"), &pod("1", json!({})));
        assert_eq!(state.decide(), None);
        // The watch reports the binding, then the pod finishes, so the third pod
        // fits.
        state.put_pod(key("p"), &pod("1", json!({"nodeName": "n"})));
        assert_eq!(state.decide(), None);
        let mut done = pod("1", json!({"nodeName": "n"}));
        done.status = serde_json::from_value(json!({"phase": "Succeeded"})).unwrap();
        state.put_pod(key("p"), &done);
        assert_eq!(bound(state.decide()).as_deref(), Some("r"));
    }

    #[test]
    fn unschedulable_pods_wait_for_a_change_and_are_reported_once() {
        let mut state = State::default();
        state.put_pod(key("p"), &pod("1", json!({})));
        assert!(
            matches!(state.decide(), Some(Decision::Explain { message, .. })
            if message == "no nodes available to schedule pods")
        );
        state.put_pod(key("p"), &pod("1", json!({})));
        assert_eq!(state.decide(), None);
        state.put_node(&node("500m"));
        assert!(matches!(state.decide(), Some(Decision::Explain { .. })));
        state.put_node(&node("500m"));
        assert_eq!(state.decide(), None);
        state.put_node(&node("600m"));
        assert_eq!(state.decide(), None);
        state.put_node(&node("1"));
        assert_eq!(bound(state.decide()).as_deref(), Some("p"));
    }

    #[test]
    fn a_failed_binding_frees_the_resources_and_is_retried() {
        let mut state = State::default();
        state.put_node(&node("1"));
        state.put_pod(key("p"), &pod("1", json!({})));
        assert!(bound(state.decide()).is_some());
        state.unbind(&key("p"), "u");
        assert_eq!(state.decide(), None);
        state.retry(&key("p"), "u");
        assert_eq!(bound(state.decide()).as_deref(), Some("p"));
    }

    #[test]
    fn pods_of_other_schedulers_are_ignored() {
        let mut state = State::default();
        state.put_node(&node("9"));
        let mut going = pod("1", json!({}));
        going.metadata.deletion_timestamp = Some(
            k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH),
        );
        for other in [
            pod("1", json!({"schedulerName": "other"})),
            pod("1", json!({"schedulingGates": [{"name": "g"}]})),
            pod("1", json!({"nodeName": "n"})),
            going,
        ] {
            state.put_pod(key("p"), &other);
            assert_eq!(state.decide(), None);
        }
    }

    #[test]
    fn pods_with_higher_priority_come_first() {
        let mut state = State::default();
        state.put_pod(key("a"), &pod("1", json!({})));
        state.put_pod(
            key("b"),
            &pod("1", json!({"priority": 7, "schedulerName": NAME})),
        );
        state.put_node(&node("9"));
        assert_eq!(bound(state.decide()).as_deref(), Some("b"));
        assert_eq!(bound(state.decide()).as_deref(), Some("a"));
    }

    fn standard_class() -> ClassFacts {
        let waits = json!({"volumeBindingMode": "WaitForFirstConsumer"});
        crate::volumes::testing::class("standard", waits)
    }

    fn with_claim(name: &str) -> Pod {
        let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
        let mut pod = pod("1", json!({"volumes": volumes}));
        pod.metadata.name = Some(name.into());
        pod
    }

    #[test]
    fn a_pod_is_bound_when_its_claims_have_volumes() {
        let mut state = State::default();
        state.put_class(standard_class());
        state.put_node(&node("1"));
        state.put_pod(key("p"), &with_claim("p"));
        assert!(
            matches!(state.decide(), Some(Decision::Explain { message, .. })
            if message == "0/1 nodes are available: persistentvolumeclaim \"c\" not found.")
        );
        let namespace = key("p").namespace;
        let mut claim = crate::volumes::testing::claim(json!({"storageClassName": "standard"}));
        claim.key.namespace.clone_from(&namespace);
        state.put_claim(claim.clone());
        let requested = state.decide();
        let Some(Decision::RequestVolumes { node, requests, .. }) = requested else {
            panic!("{requested:?}");
        };
        assert_eq!((node.as_str(), requests.provision.len()), ("n", 1));
        // Meanwhile the resources of the pod are in use.
        state.put_pod(key("q"), &pod("1", json!({})));
        assert!(matches!(state.decide(), Some(Decision::Explain { .. })));
        claim
            .annotations
            .insert("volume.kubernetes.io/selected-node".into(), "n".into());
        claim.version = "2".into();
        state.put_claim(claim.clone());
        state.await_volumes(&key("p"), "u");
        assert_eq!(state.decide(), None);
        let mut volume = crate::volumes::testing::volume("v", json!({}));
        volume.phase = "Bound".into();
        state.put_volume(volume);
        claim
            .annotations
            .insert("pv.kubernetes.io/bind-completed".into(), "yes".into());
        claim.volume = "v".into();
        claim.phase = "Bound".into();
        claim.version = "3".into();
        state.put_claim(claim);
        assert_eq!(bound(state.decide()).as_deref(), Some("p"));
        assert_eq!(state.decide(), None);
    }

    #[test]
    fn a_pod_whose_claim_has_lost_its_node_is_scheduled_again() {
        let mut state = State::default();
        state.put_class(standard_class());
        state.put_node(&node("1"));
        let mut claim = crate::volumes::testing::claim(json!({"storageClassName": "standard"}));
        claim.key.namespace = key("p").namespace;
        state.put_claim(claim);
        state.put_pod(key("p"), &with_claim("p"));
        assert!(matches!(
            state.decide(),
            Some(Decision::RequestVolumes { .. })
        ));
        state.await_volumes(&key("p"), "u");
        assert!(matches!(
            state.decide(),
            Some(Decision::RequestVolumes { .. })
        ));
    }
}
