//! Limits of a namespace: ResourceQuotas and LimitRanges.

use serde::Deserialize;
use serde_json::Value;

use super::{Amounts, Meta};

/// A ResourceQuota.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct QuotaEvidence {
    pub(crate) metadata: Meta,
    pub(crate) spec: QuotaSpec,
    pub(crate) status: QuotaStatus,
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
pub(crate) struct QuotaStatus {
    #[serde(deserialize_with = "super::amounts")]
    pub(crate) hard: Amounts,
    #[serde(deserialize_with = "super::amounts")]
    pub(crate) used: Amounts,
}

/// A LimitRange.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct LimitRangeEvidence {
    pub(crate) metadata: Meta,
    pub(crate) spec: LimitSpec,
}

/// A LimitRange's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct LimitSpec {
    pub(crate) limits: Vec<LimitItem>,
}

/// Bounds and defaults for pods or containers.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LimitItem {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "super::amounts")]
    pub(crate) max: Amounts,
    #[serde(deserialize_with = "super::amounts")]
    pub(crate) min: Amounts,
    #[serde(rename = "default", deserialize_with = "super::amounts")]
    pub(crate) default_limit: Amounts,
    #[serde(deserialize_with = "super::amounts")]
    pub(crate) default_request: Amounts,
    #[serde(deserialize_with = "super::amounts")]
    pub(crate) max_limit_request_ratio: Amounts,
}
