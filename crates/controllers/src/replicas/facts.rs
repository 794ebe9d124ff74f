//! The fields of a pod that these controllers read.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{
    key::Key,
    owned::{OwnedPod, Owner},
    pod_fields::{ContainerStatus, PodFields},
};

/// The phase of a pod, in the order of deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Not started.
    Pending,
    /// The node does not report its state.
    Unknown,
    /// Started.
    Running,
    /// Succeeded or Failed.
    Ended,
}

/// A pod, as far as these controllers need it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PodFacts {
    /// Namespace and name.
    pub(crate) key: Key,
    /// Uid.
    pub(crate) uid: String,
    /// The resourceVersion, if it is a number.
    pub(crate) version: Option<u64>,
    /// Labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// Its controller.
    pub(crate) owner: Option<Owner>,
    /// Phase.
    pub(crate) phase: Phase,
    /// Whether it is being deleted, or its deletion has been requested.
    pub(crate) deleting: bool,
    /// The node; empty if it is not scheduled.
    pub(crate) node: String,
    /// Set if the condition Ready is True: the transition time, if there is one.
    pub(crate) ready: Option<Option<Timestamp>>,
    /// The maximum number of restarts of a container, and of a sidecar.
    pub(crate) restarts: (i32, i32),
    /// `controller.kubernetes.io/pod-deletion-cost`.
    pub(crate) cost: i32,
    /// When it was created.
    pub(crate) created: Option<Timestamp>,
}

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

impl PodFacts {
    /// Reads a pod.
    pub(crate) fn of(pod: PodFields) -> Self {
        let meta = pod.metadata;
        let (spec, status) = (pod.spec.unwrap_or_default(), pod.status.unwrap_or_default());
        let is_sidecar = |name: &str| {
            let mut inits = spec.init_containers.iter().flatten();
            inits.any(|c| c.name == name && c.restart_policy.as_deref() == Some("Always"))
        };
        let most = |list: Vec<&ContainerStatus>| list.iter().map(|c| c.restart_count).max();
        let containers = status.container_statuses.iter().flatten().collect();
        let sidecars = status.init_container_statuses.iter().flatten();
        let sidecars = sidecars.filter(|c| is_sidecar(&c.name)).collect();
        let restarts = (most(containers).unwrap_or(0), most(sidecars).unwrap_or(0));
        let ready = status.ready();
        let ready = ready.map(|c| c.last_transition_time.as_ref().map(|time| time.0));
        let mut owners = meta.owner_references.into_iter();
        Self {
            key: Key::new(meta.namespace.as_deref().unwrap_or_default(), &meta.name),
            uid: meta.uid,
            version: meta.resource_version.parse().ok(),
            labels: meta.labels,
            owner: owners
                .find(|owner| owner.controller == Some(true))
                .map(|owner| Owner {
                    name: owner.name,
                    uid: owner.uid,
                }),
            phase: match status.phase.as_deref() {
                Some("Succeeded" | "Failed") => Phase::Ended,
                Some("Running") => Phase::Running,
                Some("Unknown") => Phase::Unknown,
                _ => Phase::Pending,
            },
            deleting: meta.deletion_timestamp.is_some(),
            node: spec.node_name.unwrap_or_default(),
            ready,
            restarts,
            cost: meta
                .annotations
                .get(DELETION_COST)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0),
            created: meta.creation_timestamp,
        }
    }

    /// Whether it has not ended and is not being deleted.
    pub(crate) fn is_active(&self) -> bool {
        self.phase != Phase::Ended && !self.deleting
    }

    /// Whether it is being deleted and has not ended.
    pub(crate) fn is_terminating(&self) -> bool {
        self.phase != Phase::Ended && self.deleting
    }
}

impl OwnedPod for PodFacts {
    fn key(&self) -> &Key {
        &self.key
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> Option<u64> {
        self.version
    }

    fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    fn is_deleting(&self) -> bool {
        self.deleting
    }

    fn set_deleting(&mut self) {
        self.deleting = true;
    }
}
