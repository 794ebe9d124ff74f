//! Limits of a namespace: ResourceQuotas and LimitRanges.

use longshore_model::{ObjectMeta, facts::Quantities};
use serde::Deserialize;
use serde_json::Value;

/// A ResourceQuota.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct QuotaEvidence {
    /// The quota's metadata.
    pub metadata: ObjectMeta,
    pub(crate) spec: QuotaSpec,
    /// The quota's status.
    pub status: QuotaStatus,
}

/// A ResourceQuota's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct QuotaSpec {
    #[serde(deserialize_with = "longshore_model::facts::quantities")]
    pub(crate) hard: Quantities,
    pub(crate) scopes: Vec<String>,
    pub(crate) scope_selector: Value,
}

/// A ResourceQuota's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct QuotaStatus {
    /// The limits, by resource.
    #[serde(deserialize_with = "longshore_model::facts::quantities")]
    pub hard: Quantities,
    #[serde(deserialize_with = "longshore_model::facts::quantities")]
    pub(crate) used: Quantities,
}

/// A LimitRange.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct LimitRangeEvidence {
    /// The LimitRange's metadata.
    pub metadata: ObjectMeta,
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
    /// The type of object that it applies to: `Pod`, `Container` or `PersistentVolumeClaim`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The upper bounds.
    #[serde(deserialize_with = "longshore_model::facts::quantities")]
    pub max: Quantities,
    /// The lower bounds.
    #[serde(deserialize_with = "longshore_model::facts::quantities")]
    pub min: Quantities,
    /// The default limits of containers.
    #[serde(
        rename = "default",
        deserialize_with = "longshore_model::facts::quantities"
    )]
    pub default_limit: Quantities,
    /// The default requests of containers.
    #[serde(deserialize_with = "longshore_model::facts::quantities")]
    pub default_request: Quantities,
    /// The highest ratios of limit to request.
    #[serde(deserialize_with = "longshore_model::facts::quantities")]
    pub max_limit_request_ratio: Quantities,
}
