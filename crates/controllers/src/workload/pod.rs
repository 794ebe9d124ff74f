//! The fields of a pod that these controllers read.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Affinity;

use super::kind::REVISION_LABEL;
use crate::{
    key::Key,
    owned::{OwnedPod, Owner},
    pod_fields::PodFields,
};

/// The phase of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not started.
    Pending,
    /// Started.
    Running,
    /// All containers ended without an error.
    Succeeded,
    /// A container failed, or the pod was evicted.
    Failed,
    /// The node does not report its state.
    Unknown,
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
    /// The node that its required affinity names.
    pub(crate) pinned: Option<String>,
    /// Set if the condition Ready is True: the transition time, if there is one.
    pub(crate) ready: Option<Option<Timestamp>>,
    /// When it was created.
    pub(crate) created: Option<Timestamp>,
    /// The names of its volumes from claims, and of the claims.
    pub(crate) claims: BTreeMap<String, String>,
}

impl PodFacts {
    /// Reads a pod.
    pub(crate) fn of(pod: PodFields) -> Self {
        let meta = pod.metadata;
        let (spec, status) = (pod.spec.unwrap_or_default(), pod.status.unwrap_or_default());
        let ready = status.ready();
        let ready = ready.map(|c| c.last_transition_time.as_ref().map(|time| time.0));
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
        }
    }

    /// Whether all its containers have ended.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Whether its condition Ready is True.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.is_some()
    }

    /// Whether it has been ready for long enough.
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

    /// The revision that its label tells.
    pub(crate) fn revision(&self) -> &str {
        let revision = self.labels.get(REVISION_LABEL);
        revision.map(String::as_str).unwrap_or_default()
    }
}

/// Returns the node that the required affinity names, as the pods of DaemonSets have it.
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

/// Returns when the next pod will have been ready for long enough.
pub(crate) fn next_available(
    pods: &[Arc<PodFacts>],
    min_ready_seconds: u32,
    now: Timestamp,
) -> Option<Duration> {
    if min_ready_seconds == 0 {
        return None;
    }
    let times = pods.iter();
    let times = times.filter_map(|pod| pod.available_at(min_ready_seconds));
    let next = times.filter(|at| *at > now).min()?;
    let wait = Duration::try_from(next.duration_since(now)).ok()?;
    Some(wait.saturating_add(Duration::from_millis(1)))
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
