//! The fields of a pod that the controllers of ReplicaSets, ReplicationControllers, StatefulSets
//! and DaemonSets read.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Affinity;
use longshore_client::{Error, Item, kinds::Pod};

use crate::{
    key::Key,
    pod_fields::{ContainerStatus, PodFields, Spec, Status},
};

/// The phase of a pod, in the order in which surplus pods are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Not started.
    Pending,
    /// The node does not report the pod's state.
    Unknown,
    /// Started.
    Running,
    /// All containers ended without an error.
    Succeeded,
    /// A container failed, or the pod was evicted.
    Failed,
}

/// A pod's controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The controller's name.
    pub(crate) name: String,
    /// The controller's UID.
    pub(crate) uid: String,
}

/// The fields of a pod that these controllers read.
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
    /// The pod's controller.
    pub(crate) owner: Option<Owner>,
    /// Phase.
    pub(crate) phase: Phase,
    /// True if the pod is being deleted, or its deletion has been requested.
    pub(crate) deleting: bool,
    /// The node; empty if it is not scheduled.
    pub(crate) node: String,
    /// The node that the required affinity names.
    pub(crate) pinned: Option<String>,
    /// Set if the condition Ready is True, with the transition time if the condition has one.
    pub(crate) ready: Option<Option<Timestamp>>,
    /// The creation time.
    pub(crate) created: Option<Timestamp>,
    /// The names of the volumes from claims, with the names of the claims.
    pub(crate) claims: BTreeMap<String, String>,
    /// The maximum number of restarts of a container, and of a sidecar.
    pub(crate) restarts: (i32, i32),
    /// The value of `controller.kubernetes.io/pod-deletion-cost`.
    pub(crate) cost: i32,
}

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

impl PodFacts {
    /// Reads the fields of a pod.
    pub(crate) fn read(item: &Item<Pod>) -> Result<Self, Error> {
        item.typed().map(Self::of)
    }

    /// Reads a pod.
    pub(crate) fn of(pod: PodFields) -> Self {
        let meta = pod.metadata;
        let (spec, status) = (pod.spec.unwrap_or_default(), pod.status.unwrap_or_default());
        let ready = status.ready();
        let ready = ready.map(|c| c.last_transition_time.as_ref().map(|time| time.0));
        let restarts = restarts(&spec, &status);
        let volumes = spec.volumes.into_iter().flatten();
        let claims = volumes.filter_map(|volume| {
            let claim = volume.persistent_volume_claim?.claim_name;
            Some((volume.name, claim))
        });
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
                Some("Running") => Phase::Running,
                Some("Succeeded") => Phase::Succeeded,
                Some("Failed") => Phase::Failed,
                Some("Unknown") => Phase::Unknown,
                _ => Phase::Pending,
            },
            deleting: meta.deletion_timestamp.is_some(),
            node: spec.node_name.unwrap_or_default(),
            pinned: spec.affinity.as_ref().and_then(pinned),
            ready,
            created: meta.creation_timestamp,
            claims: claims.collect(),
            restarts,
            cost: meta
                .annotations
                .get(DELETION_COST)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0),
        }
    }

    /// Returns true if the pod has not ended and is not being deleted.
    pub(crate) fn is_active(&self) -> bool {
        !self.has_ended() && !self.deleting
    }

    /// Returns true if the pod is being deleted and has not ended.
    pub(crate) fn is_terminating(&self) -> bool {
        !self.has_ended() && self.deleting
    }

    /// Returns true if all containers have ended.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Returns true if the condition Ready is True.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.is_some()
    }

    /// Returns true if the pod has been ready for `min_ready_seconds`.
    pub(crate) fn is_available(&self, min_ready_seconds: u32, now: Timestamp) -> bool {
        self.is_ready()
            && (min_ready_seconds == 0
                || self
                    .available_at(min_ready_seconds)
                    .is_some_and(|at| at <= now))
    }

    fn available_at(&self, min_ready_seconds: u32) -> Option<Timestamp> {
        let wait = Duration::from_secs(min_ready_seconds.into());
        self.ready??.checked_add(wait).ok()
    }
}

/// The maximum number of restarts of a container, and of a sidecar.
fn restarts(spec: &Spec, status: &Status) -> (i32, i32) {
    let is_sidecar = |name: &str| {
        let mut inits = spec.init_containers.iter().flatten();
        inits.any(|c| c.name == name && c.restart_policy.as_deref() == Some("Always"))
    };
    let most = |list: Vec<&ContainerStatus>| list.iter().map(|c| c.restart_count).max();
    let containers = status.container_statuses.iter().flatten().collect();
    let sidecars = status.init_container_statuses.iter().flatten();
    let sidecars = sidecars.filter(|c| is_sidecar(&c.name)).collect();
    (most(containers).unwrap_or(0), most(sidecars).unwrap_or(0))
}

/// Returns the node that the required affinity names, in the format of DaemonSets' pods.
fn pinned(affinity: &Affinity) -> Option<String> {
    let required = affinity
        .node_affinity
        .as_ref()?
        .required_during_scheduling_ignored_during_execution
        .as_ref()?;
    let mut fields = required
        .node_selector_terms
        .iter()
        .flat_map(|term| term.match_fields.iter().flatten());
    let field = fields.find(|field| field.key == "metadata.name" && field.operator == "In")?;
    match field.values.as_deref() {
        Some([node]) => Some(node.clone()),
        _ => None,
    }
}

/// Returns the time at which the next pod will have been ready for long enough.
pub(crate) fn next_available<'a>(
    pods: impl IntoIterator<Item = &'a PodFacts>,
    min_ready_seconds: u32,
    now: Timestamp,
) -> Option<Duration> {
    if min_ready_seconds == 0 {
        return None;
    }
    let times = pods.into_iter();
    let times = times.filter_map(|pod| pod.available_at(min_ready_seconds));
    let next = times.filter(|at| *at > now).min()?;
    Duration::try_from(next.duration_since(now)).ok()
}

#[cfg(test)]
pub(crate) mod testing {
    //! Pods for the unit tests.
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Returns the current time of the tests.
    pub(crate) fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    /// A pending pod of the workload `web`. Its UID is its name.
    pub(crate) fn pod(name: &str) -> PodFacts {
        PodFacts {
            key: Key::new("a", name),
            uid: name.into(),
            version: Some(1),
            labels: [("app".into(), "web".into())].into(),
            owner: Some(Owner {
                name: "web".into(),
                uid: "s1".into(),
            }),
            phase: Phase::Pending,
            deleting: false,
            node: String::new(),
            pinned: None,
            ready: None,
            created: Some(now()),
            claims: [].into(),
            restarts: (0, 0),
            cost: 0,
        }
    }
}
