//! The fields of a StatefulSet that the controller reads.

use longshore_client::{Error, Item, kinds::Any};
use serde::Deserialize;
use serde_json::Value;

use super::{names::split, status::Status};
use crate::{
    percent::scaled,
    workload::{Kind, Meta, Workload},
};

/// A StatefulSet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StatefulSet {
    /// The identity and selector of the StatefulSet.
    pub(crate) meta: Meta,
    /// The desired state.
    pub(crate) spec: Spec,
    /// The stored status.
    pub(crate) status: Status,
}

/// The spec of a StatefulSet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    /// The desired number of pods.
    #[serde(default = "one")]
    pub(crate) replicas: u32,
    /// The first ordinal.
    #[serde(default)]
    ordinals: Option<Ordinals>,
    /// The time in seconds for which a pod must be ready before it counts as available.
    #[serde(default)]
    pub(crate) min_ready_seconds: u32,
    /// `OrderedReady` or `Parallel`.
    #[serde(default)]
    pod_management_policy: String,
    /// The strategy for replacing pods after a change of the template.
    #[serde(default)]
    update_strategy: Strategy,
    /// The number of old revisions to keep.
    #[serde(default)]
    revision_history_limit: Option<i64>,
    /// The headless Service.
    #[serde(default)]
    pub(crate) service_name: String,
    /// The pod template.
    pub(crate) template: Value,
    /// The templates of PersistentVolumeClaims.
    #[serde(default)]
    pub(crate) volume_claim_templates: Vec<Value>,
    /// The policy for deleting PersistentVolumeClaims.
    #[serde(default)]
    persistent_volume_claim_retention_policy: Option<Retention>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
struct Ordinals {
    #[serde(default)]
    start: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Strategy {
    #[serde(rename = "type")]
    kind: String,
    rolling_update: Option<Rolling>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rolling {
    partition: Option<u32>,
    max_unavailable: Option<Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Retention {
    when_deleted: String,
    when_scaled: String,
}

fn one() -> u32 {
    1
}

impl Spec {
    /// Returns the first ordinal.
    pub(crate) fn start(&self) -> u32 {
        self.ordinals.as_ref().map_or(0, |ordinals| ordinals.start)
    }

    /// Returns true if one of the desired pods has this ordinal.
    pub(crate) fn has_ordinal(&self, ordinal: u32) -> bool {
        ordinal
            .checked_sub(self.start())
            .is_some_and(|index| index < self.replicas)
    }

    /// Returns true if pods are created and deleted without waiting for the others.
    pub(crate) fn is_parallel(&self) -> bool {
        self.pod_management_policy == "Parallel"
    }

    /// Returns true if pods with an old template are replaced.
    pub(crate) fn rolls_out(&self) -> bool {
        matches!(self.update_strategy.kind.as_str(), "" | "RollingUpdate")
    }

    /// Returns the number of pods that keep the old template during an update, or `None` if the
    /// strategy has no partition.
    pub(crate) fn partition(&self) -> Option<u32> {
        let rolling = self.update_strategy.rolling_update.as_ref()?;
        Some(rolling.partition.unwrap_or(0))
    }

    /// Returns the maximum number of unavailable pods during an update.
    pub(crate) fn max_unavailable(&self) -> usize {
        let rolling = self.update_strategy.rolling_update.as_ref();
        let given = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let count = given.map_or(1, |given| scaled(given, self.replicas.into(), false));
        usize::try_from(count).unwrap_or(0).max(1)
    }

    /// Returns the number of old revisions to keep, if it is limited.
    pub(crate) fn history(&self) -> Option<usize> {
        usize::try_from(self.revision_history_limit.unwrap_or(10)).ok()
    }

    /// Returns true if claims are deleted with the set, and true if they are deleted with pods that
    /// are scaled down.
    pub(crate) fn retention(&self) -> (bool, bool) {
        let policy = self.persistent_volume_claim_retention_policy.as_ref();
        policy.map_or((false, false), |policy| {
            (
                policy.when_deleted == "Delete",
                policy.when_scaled == "Delete",
            )
        })
    }
}

#[derive(Deserialize)]
struct Raw {
    spec: Spec,
    #[serde(default)]
    status: Option<Status>,
}

impl Workload for StatefulSet {
    const KIND: Kind = Kind {
        kind: "StatefulSet",
        what: "statefulset",
        component: "statefulset-controller",
        releases_revisions: false,
    };

    fn of(item: &Item<Any>) -> Result<Self, Error> {
        let raw: Raw = item.typed()?;
        Ok(Self {
            meta: Meta::of(item)?,
            spec: raw.spec,
            status: raw.status.unwrap_or_default(),
        })
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn hashed(data: &Value) -> &Value {
        data
    }

    fn accepts_name(&self, pod: &str) -> bool {
        split(pod).is_some_and(|(parent, _)| parent == self.meta.key.name)
    }
}
