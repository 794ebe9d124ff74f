//! The fields of a DaemonSet that the controller reads.

use k8s_openapi::api::core::v1::PodSpec;
use longshore_client::{Error, Item, kinds::Any};
use serde::Deserialize;
use serde_json::Value;

use super::{status::Status, tolerations::with_tolerations};
use crate::{
    percent::scaled,
    pod_facts::PodFacts,
    workload::{Kind, Meta, Workload},
};

/// The annotation with the template generation, which pods have as a label.
const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";
pub(super) const GENERATION_LABEL: &str = "pod-template-generation";

/// A DaemonSet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DaemonSet {
    /// The identity and selector of the DaemonSet.
    pub(crate) meta: Meta,
    /// The desired state.
    pub(crate) spec: Spec,
    /// The node selector, affinity, node name and tolerations of the DaemonSet's pods.
    pub(crate) placement: PodSpec,
    /// The stored status.
    pub(crate) status: Status,
}

/// The spec of a DaemonSet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    /// The time in seconds for which a pod must be ready before it counts as available.
    #[serde(default)]
    pub(crate) min_ready_seconds: u32,
    /// The strategy for replacing pods after a change of the template.
    #[serde(default)]
    update_strategy: Strategy,
    /// The number of old revisions to keep.
    #[serde(default)]
    revision_history_limit: Option<i64>,
    /// The pod template.
    pub(crate) template: Value,
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
    max_surge: Value,
    max_unavailable: Value,
}

impl Spec {
    /// Returns true if pods with an old template are replaced.
    pub(crate) fn rolls_out(&self) -> bool {
        matches!(self.update_strategy.kind.as_str(), "" | "RollingUpdate")
    }

    /// The maximum numbers of nodes with two pods, and of nodes without an available
    /// pod, of `nodes` nodes.
    pub(crate) fn bounds(&self, nodes: usize) -> (usize, usize) {
        let of = i64::try_from(nodes).unwrap_or(i64::MAX);
        let rolling = self.update_strategy.rolling_update.as_ref();
        let rolling = rolling.filter(|_| self.rolls_out());
        let count = |value: Option<&Value>| {
            let count = value.map_or(0, |value| scaled(value, of, true));
            usize::try_from(count).unwrap_or(0)
        };
        let surge = count(rolling.map(|rolling| &rolling.max_surge));
        let unavailable = count(rolling.map(|rolling| &rolling.max_unavailable));
        if nodes > 0 && surge == 0 && unavailable == 0 {
            return (0, 1);
        }
        (surge, unavailable)
    }

    /// Returns true if a node may have two pods during an update.
    pub(crate) fn allows_surge(&self) -> bool {
        self.bounds(1).0 > 0
    }

    /// The number of old revisions to keep.
    pub(crate) fn history(&self) -> usize {
        usize::try_from(self.revision_history_limit.unwrap_or(10)).unwrap_or(0)
    }
}

#[derive(Deserialize)]
struct Raw {
    spec: Spec,
    #[serde(default)]
    status: Option<Status>,
}

impl DaemonSet {
    /// Reads the fields of a pod spec that determine the eligible nodes.
    pub(super) fn placement(template: &Value) -> Result<PodSpec, Error> {
        let spec = with_tolerations(&template["spec"]);
        let invalid = |error: serde_json::Error| Error::Invalid(error.to_string());
        let read = |field: &str| spec[field].clone();
        Ok(PodSpec {
            node_name: serde_json::from_value(read("nodeName")).map_err(invalid)?,
            node_selector: serde_json::from_value(read("nodeSelector")).map_err(invalid)?,
            affinity: serde_json::from_value(read("affinity")).map_err(invalid)?,
            tolerations: serde_json::from_value(read("tolerations")).map_err(invalid)?,
            ..PodSpec::default()
        })
    }

    /// The template generation.
    pub(super) fn template_generation(&self) -> Option<&str> {
        let text = self.meta.annotations.get(GENERATION_ANNOTATION)?;
        text.parse::<i64>().is_ok().then_some(text.as_str())
    }

    /// Returns true if a pod has the current template.
    pub(super) fn is_updated(&self, pod: &PodFacts, hash: &str) -> bool {
        let by_generation = self.template_generation().is_some_and(|generation| {
            let label = pod.labels.get(GENERATION_LABEL);
            label.is_some_and(|label| label == generation)
        });
        by_generation || (!hash.is_empty() && pod.revision() == hash)
    }
}

impl Workload for DaemonSet {
    const KIND: Kind = Kind {
        kind: "DaemonSet",
        what: "daemonset",
        component: "daemonset-controller",
        releases_revisions: true,
    };

    fn of(item: &Item<Any>) -> Result<Self, Error> {
        let raw: Raw = item.typed()?;
        Ok(Self {
            meta: Meta::of(item)?,
            placement: Self::placement(&raw.spec.template)?,
            spec: raw.spec,
            status: raw.status.unwrap_or_default(),
        })
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn hashed(data: &Value) -> &Value {
        &data["spec"]["template"]
    }

    fn accepts_name(&self, _: &str) -> bool {
        true
    }
}
