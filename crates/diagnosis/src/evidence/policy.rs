//! Limits of a namespace: ResourceQuotas and LimitRanges.

use serde::Deserialize;
use serde_json::Value;

use super::{Amounts, Meta};

/// A ResourceQuota.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct QuotaEvidence {
    /// The quota's metadata.
    pub metadata: Meta,
    pub(crate) spec: QuotaSpec,
    /// The quota's status.
    pub status: QuotaStatus,
}

/// A ResourceQuota's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct QuotaSpec {
    #[serde(deserialize_with = "super::amounts")]
    pub(crate) hard: Amounts,
    pub(crate) scopes: Vec<String>,
    pub(crate) scope_selector: Value,
}

/// A ResourceQuota's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct QuotaStatus {
    /// The limits, by resource.
    #[serde(deserialize_with = "super::amounts")]
    pub hard: Amounts,
    #[serde(deserialize_with = "super::amounts")]
    pub(crate) used: Amounts,
}

/// A LimitRange.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct LimitRangeEvidence {
    /// The LimitRange's metadata.
    pub metadata: Meta,
    /// The LimitRange's spec.
    pub spec: LimitSpec,
}

/// A LimitRange's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct LimitSpec {
    /// The bounds and defaults.
    pub limits: Vec<LimitItem>,
}

/// Bounds and defaults for pods or containers.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LimitItem {
    /// What it applies to: `Pod`, `Container` or `PersistentVolumeClaim`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The upper bounds.
    #[serde(deserialize_with = "super::amounts")]
    pub max: Amounts,
    /// The lower bounds.
    #[serde(deserialize_with = "super::amounts")]
    pub min: Amounts,
    /// The default limits of containers.
    #[serde(rename = "default", deserialize_with = "super::amounts")]
    pub default_limit: Amounts,
    /// The default requests of containers.
    #[serde(deserialize_with = "super::amounts")]
    pub default_request: Amounts,
    /// The highest ratios of limit to request.
    #[serde(deserialize_with = "super::amounts")]
    pub max_limit_request_ratio: Amounts,
}
