//! The fields of a node that the controller reads.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use longshore_client::{Error, Item, kinds::Node};
use serde::Deserialize;

/// A condition of a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Condition {
    pub(super) r#type: String,
    pub(super) status: String,
    pub(super) last_heartbeat_time: Option<String>,
}

/// The fields of a node that the controller reads.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NodeFacts {
    pub(super) name: String,
    pub(super) uid: String,
    /// resourceVersion.
    pub(super) version: String,
    pub(super) created: Option<Timestamp>,
    pub(super) unschedulable: bool,
    pub(super) taints: Vec<Taint>,
    pub(super) conditions: Vec<Condition>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw {
    spec: Spec,
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Spec {
    unschedulable: Option<bool>,
    taints: Option<Vec<Taint>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    conditions: Option<Vec<Condition>>,
}

impl NodeFacts {
    /// Reads a node.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(super) fn of(item: &Item<Node>) -> Result<Self, Error> {
        let Raw { spec, status } = item.typed()?;
        Ok(Self {
            name: item.name().to_owned(),
            uid: item.uid().to_owned(),
            version: item.version().to_owned(),
            created: item.meta().creation_timestamp,
            unschedulable: spec.unschedulable == Some(true),
            taints: spec.taints.unwrap_or_default(),
            conditions: status.conditions.unwrap_or_default(),
        })
    }

    pub(super) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|one| one.r#type == kind)
    }

    /// Returns the status of the condition Ready; empty without the condition.
    pub(super) fn ready(&self) -> &str {
        self.condition("Ready").map_or("", |one| &one.status)
    }
}
