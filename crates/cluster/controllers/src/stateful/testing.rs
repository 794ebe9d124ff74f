//! A simulated StatefulSet with its pods, claims and revisions, and the effects that an
//! API server, the nodes and the garbage collector would have.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    action::{Action, Observed},
    claims::{ClaimFacts, Member, is_current, owners},
    facts::StatefulSet,
    identity::{INDEX_LABEL, NAME_LABEL, claims, ordinal, pod_name},
    plan::{Plan, plan},
    status::Status,
};
use crate::pod_facts::{Phase, PodFacts};
use crate::workload::{REVISION_LABEL, testing};

/// The StatefulSet `web`, its objects and the time. The name of a revision is the name of the image
/// in its template.
pub(super) struct Simulation {
    pub(super) set: StatefulSet,
    pub(super) pods: BTreeMap<String, PodFacts>,
    pub(super) claims: BTreeMap<String, ClaimFacts>,
    pub(super) image: String,
    pub(super) now: Timestamp,
    /// True if pods become ready.
    pub(super) healthy: bool,
    /// Every pod that was created or deleted, in this order.
    pub(super) log: Vec<String>,
    created: usize,
}

impl Simulation {
    pub(super) fn new(mut spec: Value) -> Self {
        spec["template"] = crate::history::testing::template("v1");
        spec["serviceName"] = "web".into();
        Self {
            set: StatefulSet {
                meta: testing::meta(),
                spec: serde_json::from_value(spec).unwrap(),
                status: Status::default(),
            },
            pods: BTreeMap::new(),
            claims: BTreeMap::new(),
            image: "v1".into(),
            now: testing::now(),
            healthy: true,
            log: Vec::new(),
            created: 0,
        }
    }

    /// Changes the spec as a client would.
    pub(super) fn change(&mut self, patch: &Value) {
        let mut spec = json!({
            "replicas": self.set.spec.replicas,
            "template": crate::history::testing::template(&self.image),
        });
        for (key, value) in patch.as_object().unwrap() {
            spec[key] = value.clone();
        }
        self.set.spec = serde_json::from_value(spec).unwrap();
        self.set.meta.generation += 1;
    }

    fn current(&self) -> String {
        let known = &self.set.status.current_revision;
        if known.is_empty() {
            self.image.clone()
        } else {
            known.clone()
        }
    }

    pub(super) fn plan(&self) -> Plan {
        let pods: Vec<_> = self.pods.values().cloned().map(Arc::new).collect();
        plan(&Observed {
            set: &self.set,
            pods: &pods,
            revisions: (&self.current(), &self.image),
            collisions: 0,
            claim: &|name| self.claims.get(name).cloned(),
            now: self.now,
        })
    }

    /// Executes up to `limit` actions of a plan. Stores the status if all actions were executed, as
    /// if the controller crashed otherwise. Returns true if anything changed.
    pub(super) fn act(&mut self, limit: usize) -> bool {
        let plan = self.plan();
        let mut status = plan.status;
        let actions: Vec<Action> = plan.phases.into_iter().flatten().collect();
        let crashes = actions.len() > limit;
        for action in actions.iter().take(limit) {
            if matches!(action, Action::Update(_)) {
                status.current_replicas -= 1;
            }
            self.execute(action);
        }
        if crashes {
            return true;
        }
        status.complete(self.set.spec.replicas);
        let changed = !actions.is_empty() || status != self.set.status;
        self.set.status = status;
        changed
    }

    fn execute(&mut self, action: &Action) {
        match action {
            Action::Create {
                ordinal,
                old_revision,
            } => {
                let revision = if *old_revision {
                    self.current()
                } else {
                    self.image.clone()
                };
                self.create(*ordinal, &revision);
            }
            Action::Claims(pod) => {
                self.create_claims(ordinal(pod).unwrap());
                self.retain(pod);
            }
            Action::Repair(pod) => {
                let index = ordinal(pod).unwrap();
                self.create_claims(index);
                let labels = &mut self.pods.get_mut(&pod.key.name).unwrap().labels;
                labels.insert(NAME_LABEL.into(), pod.key.name.clone());
                labels.insert(INDEX_LABEL.into(), index.to_string());
                self.retain(pod);
            }
            Action::Retain(pod) => self.retain(pod),
            Action::Delete(pod) | Action::Update(pod) => {
                self.log.push(format!("-{}", pod.key.name));
                self.pods.get_mut(&pod.key.name).unwrap().deleting = true;
            }
        }
    }

    fn create(&mut self, ordinal: u32, revision: &str) {
        self.create_claims(ordinal);
        let name = pod_name(&self.set, ordinal);
        assert!(!self.pods.contains_key(&name), "{name} exists");
        self.log.push(format!("+{name}"));
        self.created += 1;
        let mut pod = testing::pod(&name);
        pod.uid = format!("p{}", self.created);
        pod.labels.insert(NAME_LABEL.into(), name.clone());
        pod.labels.insert(REVISION_LABEL.into(), revision.into());
        let claims = claims(&self.set, ordinal).into_iter();
        pod.claims = claims
            .map(|claim| (claim.volume.to_owned(), claim.name))
            .collect();
        self.pods.insert(name, pod);
    }

    fn create_claims(&mut self, ordinal: u32) {
        for claim in claims(&self.set, ordinal) {
            let known = self.claims.entry(claim.name.clone());
            known.or_insert_with(|| ClaimFacts {
                uid: claim.name.clone(),
                name: claim.name,
                ..ClaimFacts::default()
            });
        }
    }

    fn retain(&mut self, pod: &PodFacts) {
        for claim in claims(&self.set, ordinal(pod).unwrap()) {
            let Some(known) = self.claims.get_mut(&claim.name) else {
                continue;
            };
            let member = Member::of(&self.set, pod);
            if !is_current(&self.set, known, member) {
                let owners = owners(&self.set, known, member);
                known.owners = serde_json::from_value(owners.into()).unwrap();
            }
        }
    }

    /// Lets a node act on a pod: starts it, makes it ready, or removes it. Returns true if there
    /// was something to do.
    pub(super) fn step(&mut self, index: usize) -> bool {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        let Some(name) = names.get(index % names.len().max(1)) else {
            return false;
        };
        let pod = self.pods.get_mut(name).unwrap();
        if pod.deleting {
            let uid = pod.uid.clone();
            self.pods.remove(name);
            // The garbage collector.
            let owned = |claim: &ClaimFacts| claim.owners.iter().any(|owner| owner.uid == uid);
            self.claims.retain(|_, claim| !owned(claim));
        } else if pod.phase == Phase::Pending {
            pod.phase = Phase::Running;
        } else if pod.phase == Phase::Running && pod.ready.is_none() && self.healthy {
            pod.ready = Some(Some(self.now));
        } else {
            return false;
        }
        true
    }

    /// Lets all components act until nothing is left to do.
    pub(super) fn settle(&mut self) {
        for _ in 0..1000 {
            let acted = self.act(usize::MAX);
            let mut stepped = false;
            for index in 0..self.pods.len() {
                stepped |= self.step(index);
            }
            if !acted && !stepped {
                return;
            }
        }
        panic!("the simulation does not settle: {:?}", self.set.status);
    }

    /// Returns the names of the pods and their revisions.
    pub(super) fn pods(&self) -> Vec<(String, String)> {
        let pods = self.pods.values();
        let pods = pods.map(|pod| (pod.key.name.clone(), pod.revision().to_owned()));
        pods.collect()
    }
}
