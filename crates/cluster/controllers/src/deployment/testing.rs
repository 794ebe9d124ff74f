//! A simulation for the unit tests: a Deployment, its ReplicaSets, and the effects
//! that an API server and the ReplicaSet controller would have.
#![allow(clippy::unwrap_used)]

use jiff::Timestamp;
use longshore_client::LabelSelector;
use serde_json::{Value, json};

use super::{
    facts::{Counts, Deployment, ReplicaSet},
    plan::{Observed, Plan, created, plan},
    revision::REVISION,
    status::Status,
};
use crate::key::Key;

/// The Deployment `web`, its ReplicaSets and the time.
pub(super) struct Simulation {
    pub(super) deployment: Deployment,
    pub(super) sets: Vec<ReplicaSet>,
    pub(super) now: Timestamp,
    /// The UIDs of ReplicaSets whose pods never become ready.
    pub(super) broken: Vec<String>,
    pub(super) running: Vec<String>,
}

pub(super) fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}},
           "spec": {"containers": [{"name": "main", "image": image}]}})
}

impl Simulation {
    /// Creates a simulation with the given spec, a selector and a template.
    pub(super) fn new(mut spec: Value) -> Self {
        spec["selector"] = json!({"matchLabels": {"app": "web"}});
        spec["template"] = template("v1");
        Self {
            deployment: Deployment {
                key: Key::new("a", "web"),
                uid: "d1".into(),
                version: "1".into(),
                generation: 1,
                deleting: false,
                annotations: [].into(),
                selector: LabelSelector::exactly([("app", "web")]).unwrap(),
                spec: serde_json::from_value(spec).unwrap(),
                status: Status::default(),
            },
            sets: Vec::new(),
            now: "2026-01-02T03:04:05Z".parse().unwrap(),
            broken: Vec::new(),
            running: Vec::new(),
        }
    }

    /// Changes the Deployment as kubectl would.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut Deployment)) {
        change(&mut self.deployment);
        self.deployment.generation += 1;
    }

    pub(super) fn plan(&self) -> Plan {
        plan(Observed {
            deployment: &self.deployment,
            sets: self.sets.clone(),
            running: &self.running,
            now: self.now,
        })
    }

    /// Executes a plan. Returns true if there were actions.
    pub(super) fn act(&mut self) -> bool {
        let plan = self.plan();
        let idle = plan
            == Plan {
                requeue_after: plan.requeue_after,
                ..Plan::default()
            };
        for (old, mut new) in plan.update {
            if new.replicas != old.replicas {
                new.generation += 1;
            }
            *self.sets.iter_mut().find(|set| set.uid == old.uid).unwrap() = new;
        }
        if let Some(new) = plan.create {
            self.deployment.status = created(&self.deployment, &new.name, self.now);
            self.deployment
                .annotations
                .insert(REVISION.into(), new.revision);
            self.sets.push(ReplicaSet {
                key: Key::new("a", &new.name),
                uid: new.name.clone(),
                version: "1".into(),
                generation: 1,
                deleting: false,
                created: Some(self.now),
                owner: Some(("web".into(), "d1".into())),
                labels: [].into(),
                annotations: new.annotations,
                replicas: new.replicas,
                min_ready_seconds: 0,
                template: new.template,
                counts: Counts::default(),
            });
            return true;
        }
        for gone in &plan.delete {
            self.sets.retain(|set| set.uid != gone.uid);
        }
        if let Some(revision) = plan.revision {
            self.deployment
                .annotations
                .insert(REVISION.into(), revision);
        }
        if let Some(status) = plan.status {
            self.deployment.status = status;
        }
        !idle
    }

    /// Adds or removes one pod of the ReplicaSet, or makes one pod ready. Returns true if there was
    /// something to do.
    pub(super) fn step(&mut self, index: usize) -> bool {
        let Some(set) = self.sets.get_mut(index) else {
            return false;
        };
        let before = set.counts.clone();
        let counts = &mut set.counts;
        counts.observed_generation = set.generation;
        counts.terminating_replicas = Some(0);
        let broken = self.broken.contains(&set.uid);
        if counts.replicas < set.replicas {
            counts.replicas += 1;
        } else if counts.replicas > set.replicas {
            // Pods that are not ready are removed first.
            counts.replicas -= 1;
            counts.ready_replicas = counts.ready_replicas.min(counts.replicas);
            counts.available_replicas = counts.ready_replicas;
        } else if counts.ready_replicas < counts.replicas && !broken {
            counts.ready_replicas += 1;
            counts.available_replicas += 1;
        }
        set.counts != before
    }

    /// Lets all controllers act until nothing is left to do.
    pub(super) fn settle(&mut self) {
        for _ in 0..1000 {
            let acted = self.act();
            let mut stepped = false;
            for index in 0..self.sets.len() {
                stepped |= self.step(index);
            }
            if !acted && !stepped {
                return;
            }
        }
        panic!(
            "the simulation does not settle: {:?}",
            self.deployment.status
        );
    }

    /// Returns the desired number of pods by image.
    pub(super) fn sizes(&self) -> Vec<(String, i64)> {
        let image = |set: &ReplicaSet| {
            let image = &set.template["spec"]["containers"][0]["image"];
            image.as_str().unwrap().to_owned()
        };
        self.sets
            .iter()
            .map(|set| (image(set), set.replicas))
            .collect()
    }

    pub(super) fn total(&self) -> i64 {
        self.sets.iter().map(|set| set.replicas).sum()
    }

    pub(super) fn available(&self) -> i64 {
        self.sets
            .iter()
            .map(|set| set.counts.available_replicas)
            .sum()
    }

    /// Returns status and reason of the condition Progressing.
    pub(super) fn progressing(&self) -> (String, String) {
        let conditions = &self.deployment.status.conditions;
        let found = conditions.iter().find(|c| c.kind == "Progressing").unwrap();
        (found.status.clone(), found.reason.clone())
    }
}
