//! Nodes.

use serde::Deserialize;

use super::{Condition, Quantities};
use crate::{ObjectMeta, meta::null_as_default};

/// The fields of a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeFacts {
    /// `metadata`.
    pub metadata: ObjectMeta,
    /// `spec`.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: NodeSpec,
    /// `status`.
    #[serde(deserialize_with = "null_as_default")]
    pub status: NodeStatus,
}

/// The fields of a node's `spec`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// Taints, which repel pods that do not tolerate them.
    #[serde(deserialize_with = "null_as_default")]
    pub taints: Vec<Taint>,
    /// True if the node is cordoned.
    pub unschedulable: bool,
}

/// A taint, which repels pods that do not tolerate it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Taint {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// The fields of a node's `status`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeStatus {
    /// The amounts of resources that pods can request.
    #[serde(deserialize_with = "super::quantities")]
    pub allocatable: Quantities,
    /// `Ready` and others.
    #[serde(deserialize_with = "null_as_default")]
    pub conditions: Vec<Condition>,
    /// Software versions.
    pub node_info: NodeInfo,
}

/// Software versions of a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeInfo {
    /// The container runtime and its version, for example `containerd://2.1.0`.
    pub container_runtime_version: String,
}

impl NodeFacts {
    /// Returns true if the condition `Ready` is true.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|condition| condition.is_true("Ready"))
    }
}
