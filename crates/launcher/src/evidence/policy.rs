//! Limits of a namespace: ResourceQuotas and LimitRanges.

use serde::Deserialize;
use serde_json::Value;

use super::{Amounts, Meta};

/// A ResourceQuota.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct QuotaEvidence {
    pub metadata: Meta,
    pub spec: QuotaSpec,
    pub status: QuotaStatus,
}

/// A ResourceQuota's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct QuotaSpec {
    #[serde(deserialize_with = "super::amounts")]
    pub hard: Amounts,
    pub scopes: Vec<String>,
    pub scope_selector: Value,
}

/// A ResourceQuota's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct QuotaStatus {
    #[serde(deserialize_with = "super::amounts")]
    pub hard: Amounts,
    #[serde(deserialize_with = "super::amounts")]
    pub used: Amounts,
}

/// A LimitRange.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct LimitRangeEvidence {
    pub metadata: Meta,
    pub spec: LimitSpec,
}

/// A LimitRange's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct LimitSpec {
    pub limits: Vec<LimitItem>,
}

/// Bounds and defaults for pods or containers.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct LimitItem {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(deserialize_with = "super::amounts")]
    pub max: Amounts,
    #[serde(deserialize_with = "super::amounts")]
    pub min: Amounts,
    #[serde(rename = "default", deserialize_with = "super::amounts")]
    pub default_limit: Amounts,
    #[serde(deserialize_with = "super::amounts")]
    pub default_request: Amounts,
    #[serde(deserialize_with = "super::amounts")]
    pub max_limit_request_ratio: Amounts,
}
