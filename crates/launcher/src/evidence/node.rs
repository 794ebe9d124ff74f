//! Nodes.

use serde::Deserialize;

use super::{Amounts, Condition, Meta};

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct NodeEvidence {
    pub metadata: Meta,
    pub spec: NodeSpec,
    pub status: NodeStatus,
}

/// A node's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct NodeSpec {
    pub taints: Vec<Taint>,
    pub unschedulable: bool,
}

/// A taint, which repels pods that do not tolerate it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct Taint {
    pub key: String,
    pub value: String,
    pub effect: String,
}

/// A node's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct NodeStatus {
    #[serde(deserialize_with = "super::amounts")]
    pub allocatable: Amounts,
    pub conditions: Vec<Condition>,
    pub node_info: NodeInfo,
}

/// Software versions of a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct NodeInfo {
    pub container_runtime_version: String,
}

impl NodeEvidence {
    /// Whether its condition Ready is true.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|condition| condition.kind == "Ready" && condition.status == "True")
    }
}
