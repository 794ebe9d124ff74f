//! Preemption in the scheduler's state: victims, and nominations of nodes. Pure.

use std::borrow::Cow;

use super::{
    budget::Budget,
    choose::{NodeFacts, Usage, problems},
    known::{Cleared, KnownPod, VictimPod},
    preempt::{Candidate, Victim, choose},
    state::State,
};
use crate::key::Key;

impl State {
    /// Returns the resources in use on a node from the view of a pod: they include the resources of
    /// pods that have nominated the node and have at least the same priority.
    pub(super) fn usage_for(&self, node: &str, key: &Key, pod: &KnownPod) -> Cow<'_, Usage> {
        let usage = match self.usage.get(node) {
            Some(usage) => Cow::Borrowed(usage),
            None => Cow::Owned(Usage::default()),
        };
        let others = self.nominated.iter().filter(|other| *other != key);
        let others = others.filter_map(|other| self.pods.get(other));
        let others = others.filter(|other| {
            other.nominated.as_deref() == Some(node) && other.priority() >= pod.priority()
        });
        others.fold(usage, |mut usage, other| {
            usage.to_mut().add(&other.needs.load);
            usage
        })
    }

    /// Returns the pods with a lower priority on each node.
    fn victims_for(&self, pod: &KnownPod) -> impl Iterator<Item = (&str, Victim<'_>)> {
        let priority = pod.priority();
        let pods = self.pods.iter();
        pods.filter_map(move |(key, other)| {
            let node = other.node.as_deref()?;
            let victim = Victim {
                key,
                priority: other.priority(),
                started: other.started,
                labels: &other.labels,
                load: &other.needs.load,
            };
            (other.priority() < priority).then_some((node, victim))
        })
    }

    /// Chooses a node for a pod that fits none, and the pods to delete there. Returns `None` if the
    /// pod may not preempt others, or if preemption does not help.
    pub(super) fn preempt(&self, key: &Key) -> Option<(String, Vec<VictimPod>)> {
        let pod = self.pods.get(key).filter(|pod| pod.may_preempt)?;
        let (lowest, _) = self.priorities.first_key_value()?;
        if *lowest >= pod.priority() {
            return None;
        }
        let victims: Vec<(&str, Victim<'_>)> = self.victims_for(pod).collect();
        let is_leaving = |key: &Key| self.pods.get(key).is_some_and(|pod| pod.is_leaving);
        let nominated = pod.nominated.as_deref();
        let mut leaving = victims.iter();
        if leaving.any(|(node, victim)| nominated == Some(node) && is_leaving(victim.key)) {
            // The pod waits until the victims have ended.
            return None;
        }
        let is_used = |claim: &str| {
            let mut others = self.pods.iter().filter(|(other, pod)| {
                other.namespace == key.namespace && *other != key && pod.node.is_some()
            });
            others.any(|(_, pod)| pod.needs.claims.iter().any(|used| used.name == claim))
        };
        let claims = &pod.needs.claims;
        let claims = self.storage.claims(key, &pod.uid, claims, is_used).ok()?;
        let candidates = self.nodes.values().map(|node| {
            let here = victims.iter().filter(|(other, _)| *other == node.name);
            Candidate {
                node,
                usage: self.usage_for(&node.name, key, pod).into_owned(),
                victims: here.map(|(_, victim)| *victim).collect(),
            }
        });
        let budgets: Vec<&Budget> = self.budgets.values().collect();
        let placement = self.placement(key, pod);
        let fits = |node: &NodeFacts, usage: &Usage| {
            problems(&pod.needs, node, usage).is_empty()
                && placement.problem(node).is_none()
                && self
                    .storage
                    .problems(&claims, &node.name, &node.labels)
                    .is_empty()
        };
        let chosen = choose(candidates, &budgets, fits)?;
        let victims = chosen.victims.into_iter().filter_map(|key| {
            let uid = self.pods.get(key)?.uid.clone();
            let key = key.clone();
            Some(VictimPod { key, uid })
        });
        Some((chosen.node.to_owned(), victims.collect()))
    }

    /// Records a nomination and its victims. Returns the pods with a lower priority that
    /// lose their nomination of the node.
    pub(super) fn nominate(
        &mut self,
        key: &Key,
        node: &str,
        victims: &[VictimPod],
    ) -> Vec<Cleared> {
        for victim in victims {
            if let Some(pod) = self.pods.get_mut(&victim.key) {
                pod.is_leaving = true;
            }
        }
        let Some(pod) = self.pods.get_mut(key) else {
            return Vec::new();
        };
        let priority = pod.priority();
        pod.nominated = Some(node.to_owned());
        pod.is_nominating = true;
        let mut cleared = Vec::new();
        for other in &self.nominated {
            let Some(pod) = self.pods.get_mut(other).filter(|_| other != key) else {
                continue;
            };
            if pod.priority() < priority && pod.nominated.as_deref() == Some(node) {
                pod.nominated = None;
                pod.is_nominating = false;
                let (key, uid) = (other.clone(), pod.uid.clone());
                cleared.push(Cleared { key, uid });
            }
        }
        for other in &cleared {
            self.nominated.remove(&other.key);
        }
        self.nominated.insert(key.clone());
        cleared
    }

    /// Undoes a preemption whose requests failed.
    pub(crate) fn undo_preemption(&mut self, key: &Key, uid: &str, victims: &[VictimPod]) {
        for victim in victims {
            let pod = self.pods.get_mut(&victim.key);
            if let Some(pod) = pod.filter(|pod| pod.uid == victim.uid) {
                pod.is_leaving = false;
            }
        }
        if let Some(pod) = self.pods.get_mut(key).filter(|pod| pod.uid == uid) {
            pod.nominated = None;
            pod.is_nominating = false;
            self.nominated.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
