//! The fields of a cluster's objects that following, explaining, listing and preflight need,
//! parsed from JSON.

mod event;
mod job;
mod node;
mod pod;
mod policy;
mod workload;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

pub use event::{EventEvidence, Regarding};
pub use job::{
    CronJobEvidence, CronJobSpec, CronJobStatus, JobEvidence, JobSpec, JobStatus, Template,
};
pub(crate) use node::Taint;
pub use node::{NodeEvidence, NodeInfo, NodeStatus};
pub use pod::{Container, LocalName, PodEvidence, PodSpec, PodStatus, ResourceNeeds, Terminated};
pub(crate) use pod::{ContainerStatus, Toleration};
pub use policy::{LimitItem, LimitRangeEvidence, LimitSpec, QuotaEvidence, QuotaStatus};
pub use workload::WorkloadEvidence;

/// Metadata of a pod or Job.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Meta {
    /// The object's name.
    pub name: String,
    /// The object's namespace.
    pub namespace: String,
    /// The object's uid.
    pub(crate) uid: String,
    /// The object's labels.
    pub labels: BTreeMap<String, String>,
    /// The object's annotations.
    pub annotations: BTreeMap<String, String>,
    /// When the object was created.
    pub creation_timestamp: Option<Timestamp>,
    /// Set while the object is being deleted.
    pub(crate) deletion_timestamp: Option<Timestamp>,
    pub(crate) owner_references: Vec<Owner>,
}

impl Meta {
    /// The name of the owner of this kind.
    #[must_use]
    pub fn owner(&self, kind: &str) -> Option<&str> {
        let owner = self.controller().filter(|owner| owner.kind == kind);
        owner.map(|owner| owner.name.as_str())
    }

    /// Its controller, of which there is at most one.
    pub(crate) fn controller(&self) -> Option<&Owner> {
        let mut owners = self.owner_references.iter();
        owners.find(|owner| owner.controller)
    }
}

/// An owner of an object.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Owner {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) controller: bool,
}

/// A condition of a pod or Job.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    /// The reason in one word.
    pub reason: String,
    pub(crate) message: String,
    /// When the status last changed.
    pub last_transition_time: Option<Timestamp>,
}

/// Quantities as written, by resource name.
pub type Amounts = BTreeMap<String, String>;

/// Quantities are strings or numbers; `null` is an empty map.
fn amounts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Amounts, D::Error> {
    let read: Option<BTreeMap<String, serde_json::Value>> = Option::deserialize(deserializer)?;
    let text = |value: serde_json::Value| match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    Ok(read
        .into_iter()
        .flatten()
        .map(|(name, value)| (name, text(value)))
        .collect())
}

/// The value of a quantity; `None` if it is missing or invalid.
#[must_use]
pub fn number(amounts: &Amounts, name: &str) -> Option<f64> {
    let quantity: Option<longshore_model::Quantity> = amounts.get(name)?.parse().ok();
    quantity.map(|quantity| quantity.value())
}
