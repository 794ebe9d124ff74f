//! Nodes.

use serde::Deserialize;

use super::{Amounts, Condition, Meta};

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeEvidence {
    pub(crate) metadata: Meta,
    pub(crate) spec: NodeSpec,
    /// The node's status.
    pub status: NodeStatus,
}

/// A node's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct NodeSpec {
    pub(crate) taints: Vec<Taint>,
    pub(crate) unschedulable: bool,
}

/// A taint, which repels pods that do not tolerate it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Taint {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) effect: String,
}

/// A node's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeStatus {
    #[serde(deserialize_with = "super::amounts")]
    pub(crate) allocatable: Amounts,
    pub(crate) conditions: Vec<Condition>,
    /// The software versions.
    pub node_info: NodeInfo,
}

/// Software versions of a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeInfo {
    /// The container runtime and its version: `containerd://2.1.0`.
    pub container_runtime_version: String,
}

impl NodeEvidence {
    /// Whether its condition Ready is true.
    pub(crate) fn is_ready(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|condition| condition.kind == "Ready" && condition.status == "True")
    }
}
