//! The scheduler's state: nodes, the resources in use on them, and pods that are
//! not scheduled. Pure.

#[cfg(test)]
mod tests;
mod updates;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;

use super::{
    budget::Budget,
    choose::{NodeFacts, Usage, choose, on_no_node},
    known::{Cleared, KnownPod, QueueKey, VictimPod},
    placement::{Neighbor, Placement},
    storage::{Progress, Storage, VolumeRequests},
};
use crate::{guard, key::Key};

/// The default `schedulerName` of pods.
pub(super) const NAME: &str = "default-scheduler";

/// An action for a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Bind the pod to the node.
    Bind { key: Key, uid: String, node: String },
    /// Request the volumes of the pod's claims on the node. The pod is bound after the volumes are
    /// ready.
    RequestVolumes {
        key: Key,
        uid: String,
        node: String,
        requests: VolumeRequests,
    },
    /// Report why the pod cannot be scheduled.
    Explain {
        key: Key,
        uid: String,
        message: String,
        /// The time at which the pod was first unschedulable.
        since: Option<Timestamp>,
    },
    /// Delete the victims, so that the pod fits the node, and nominate the node.
    Preempt {
        key: Key,
        uid: String,
        node: String,
        victims: Vec<VictimPod>,
        /// Pods that lose their nomination of the node.
        cleared: Vec<Cleared>,
        /// The reason why the pod cannot be scheduled now.
        message: String,
        /// The time at which the pod was first unschedulable.
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
    /// The number of pods with rules about other pods.
    pub(super) ruled: usize,
    /// True if claims or volumes have changed since `awaiting` was checked.
    storage_changed: bool,
}

impl State {
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
                    let load = known.needs.load.clone();
                    let priority = known.priority();
                    self.usage.entry(node.clone()).or_default().add(&load);
                    *self.priorities.entry(priority).or_insert(0) += 1;
                    let is_elsewhere = known.nominated.as_ref() != Some(&node);
                    if self.nominated.remove(&key) && is_elsewhere {
                        self.waiting.append(&mut self.unschedulable);
                    }
                    self.retry_ruled();
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
        let placement = self.placement(key, known);
        let others = |node: &NodeFacts| {
            let problems = self.storage.problems(&claims, &node.name, &node.labels);
            match problems.is_empty() {
                true => {
                    let problem = placement.problem(node).map(str::to_owned);
                    problem.into_iter().collect()
                }
                false => problems,
            }
        };
        let preference = |node: &NodeFacts| placement.preference(node);
        let nodes = self.nodes.values();
        let nodes = nodes.map(|node| (node, self.usage_for(&node.name, key, known)));
        let nominated = known.nominated.as_ref();
        let nominated = nominated.and_then(|node| self.nodes.get(node));
        let nominated = nominated.and_then(|node| {
            let usage = self.usage_for(&node.name, key, known);
            choose(&known.needs, [(node, usage)], others, preference).ok()
        });
        let node = match nominated {
            Some(node) => node,
            None => choose(&known.needs, nodes, others, preference)?,
        };
        if !claims.has_delayed() {
            return Ok((node.to_owned(), None));
        }
        let labels = self.nodes.get(node).map(|node| &node.labels);
        let requests = labels.and_then(|labels| self.storage.requests(&claims, node, labels));
        Ok((node.to_owned(), requests))
    }

    /// Finds the domains that suit a pod by the other pods. Reads all pods only if a pod has rules.
    pub(super) fn placement<'a>(&'a self, key: &'a Key, known: &'a KnownPod) -> Placement<'a> {
        if self.ruled == 0 {
            return Placement::default();
        }
        let neighbors = self.pods.iter().filter(|(other, _)| *other != key);
        let neighbors = neighbors.filter_map(|(other, pod)| {
            Some(Neighbor {
                namespace: &other.namespace,
                labels: &pod.labels,
                rules: pod.rules.as_deref(),
                is_terminating: pod.is_terminating,
                node: self.nodes.get(pod.node.as_ref()?)?,
            })
        });
        let neighbors: Vec<Neighbor<'_>> = neighbors.collect();
        Placement::of(
            (&key.namespace, &known.labels),
            (&known.needs, known.rules.as_deref()),
            self.nodes.values(),
            &neighbors,
        )
    }

    /// Makes unschedulable pods with rules about other pods eligible again.
    pub(super) fn retry_ruled(&mut self) {
        if self.ruled == 0 || self.unschedulable.is_empty() {
            return;
        }
        let is_ruled = |queue_key: &QueueKey| {
            let pod = self.pods.get(&queue_key.2);
            pod.is_some_and(|pod| pod.rules.is_some())
        };
        let retried = self.unschedulable.iter().filter(|one| is_ruled(one));
        for queue_key in retried.cloned().collect::<Vec<QueueKey>>() {
            self.unschedulable.remove(&queue_key);
            self.waiting.insert(queue_key);
        }
    }

    /// Returns the binding of a pod whose volumes are ready. Pods that lost a volume are queued
    /// again.
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
        let (load, priority) = (known.needs.load.clone(), known.priority());
        if let Some(usage) = self.usage.get_mut(&node) {
            usage.remove(&load);
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
