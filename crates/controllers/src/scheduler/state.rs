//! The scheduler's state: nodes, the resources in use on them, and pods that are
//! not scheduled. Pure.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};

use super::choose::{Needs, NodeFacts, Usage, choose};
use crate::{guard, key::Key};

/// The default `schedulerName` of pods.
pub(super) const NAME: &str = "default-scheduler";

/// An action for a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Bind it to the node.
    Bind { key: Key, uid: String, node: String },
    /// Report why it cannot be scheduled.
    Explain {
        key: Key,
        uid: String,
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

/// The queue of unscheduled pods, sorted by priority and then by age.
type QueueKey = (Reverse<i32>, Option<Timestamp>, Key);

#[derive(Debug)]
struct KnownPod {
    uid: String,
    needs: Needs,
    /// The node that it is bound to, or is being bound to.
    node: Option<String>,
    queue_key: QueueKey,
    /// Why it could not be scheduled the last time, and since when.
    explained: Option<(String, Option<Timestamp>)>,
}

/// The scheduler's observed state.
#[derive(Debug, Default)]
pub(crate) struct State {
    nodes: BTreeMap<String, NodeFacts>,
    usage: HashMap<String, Usage>,
    pods: HashMap<Key, KnownPod>,
    waiting: BTreeSet<QueueKey>,
    unschedulable: BTreeSet<QueueKey>,
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
        let needs = Needs::of(pod);
        let is_unchanged = known.is_some_and(|known| known.needs == needs);
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
        self.forget(&key);
        let priority = spec.and_then(|spec| spec.priority).unwrap_or(0);
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let queue_key = (Reverse(priority), created, key.clone());
        if let Some(node) = &bound {
            self.usage
                .entry(node.clone())
                .or_default()
                .add(&needs.amounts);
        } else if wants_node {
            // A change of the pod's own status is no reason to try again.
            let list = if unschedulable && is_unchanged {
                &mut self.unschedulable
            } else {
                &mut self.waiting
            };
            list.insert(queue_key.clone());
        }
        self.pods.insert(
            key,
            KnownPod {
                uid,
                needs,
                node: bound,
                queue_key,
                explained,
            },
        );
    }

    /// Removes a pod that was deleted or has finished. Its resources are free for
    /// unschedulable pods.
    pub(crate) fn remove_pod(&mut self, key: &Key, uid: &str) {
        if self.pods.get(key).is_some_and(|known| known.uid == uid) && self.forget(key) {
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
        let Some(node) = known.node else { return false };
        if let Some(usage) = self.usage.get_mut(&node) {
            usage.remove(&known.needs.amounts);
            if usage.pods == 0 {
                self.usage.remove(&node);
            }
        }
        true
    }

    /// Returns the next decision; `None` if no pod waits.
    pub(crate) fn decide(&mut self) -> Option<Decision> {
        while let Some(queue_key) = self.waiting.pop_first() {
            let key = queue_key.2.clone();
            let Some(known) = self.pods.get_mut(&key) else {
                continue;
            };
            let idle = Usage::default();
            let nodes = self.nodes.values();
            let nodes = nodes.map(|node| (node, self.usage.get(&node.name).unwrap_or(&idle)));
            let choice = match guard::attempt(|| choose(&known.needs, nodes)) {
                Ok(choice) => choice,
                Err(panic) => {
                    let uid = known.uid.clone();
                    return Some(Decision::Panicked { key, uid, panic });
                }
            };
            match choice {
                Ok(node) => {
                    let node = node.to_owned();
                    known.node = Some(node.clone());
                    self.usage
                        .entry(node.clone())
                        .or_default()
                        .add(&known.needs.amounts);
                    return Some(Decision::Bind {
                        key,
                        uid: known.uid.clone(),
                        node,
                    });
                }
                Err(message) => {
                    self.unschedulable.insert(queue_key);
                    let before = known.explained.take();
                    let since = before.as_ref().and_then(|(_, since)| *since);
                    let is_new = before.is_none_or(|(before, _)| before != message);
                    known.explained = Some((message.clone(), since));
                    if is_new {
                        let uid = known.uid.clone();
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

    /// Undoes a failed binding, so that other pods can use the resources.
    pub(crate) fn unbind(&mut self, key: &Key, uid: &str) {
        let Some(known) = self.pods.get_mut(key).filter(|known| known.uid == uid) else {
            return;
        };
        if let Some(usage) = known.node.take().and_then(|node| self.usage.get_mut(&node)) {
            usage.remove(&known.needs.amounts);
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
            Decision::Explain { .. } | Decision::Panicked { .. } => None,
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
}
