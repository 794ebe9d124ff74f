//! ResourceQuotas: which objects they count, and how much of each resource an object uses.
//!
//! API servers check new objects with it, and the controller recounts with it.

mod charge;
mod evaluator;
mod names;
mod pod;
mod scope;

use serde::Deserialize;
use serde_json::{Map, Value};

pub use charge::{Charge, Request, charge};
pub use evaluator::Evaluator;
pub use scope::Scope;

use crate::{meta::null_as_default, quantity::Amounts};

/// A ResourceQuota.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Quota {
    /// The name of the quota.
    pub name: String,
    /// The limits of the spec.
    pub spec_hard: Amounts,
    /// The limits in force, which the controller copies from the spec.
    pub hard: Amounts,
    /// The current usage.
    pub used: Amounts,
    /// The scopes, which select the objects that the quota counts.
    pub scopes: Vec<Scope>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw {
    metadata: Metadata,
    #[serde(deserialize_with = "null_as_default")]
    spec: Spec,
    #[serde(deserialize_with = "null_as_default")]
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metadata {
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    hard: Amounts,
    #[serde(deserialize_with = "null_as_default")]
    scopes: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    scope_selector: ScopeSelector,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ScopeSelector {
    #[serde(deserialize_with = "null_as_default")]
    match_expressions: Vec<Scope>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "null_as_default")]
    hard: Amounts,
    #[serde(deserialize_with = "null_as_default")]
    used: Amounts,
}

impl Quota {
    /// Reads a ResourceQuota.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub fn of(object: &Map<String, Value>) -> Result<Self, serde_json::Error> {
        let raw = Raw::deserialize(object)?;
        let mut scopes: Vec<Scope> = raw.spec.scopes.into_iter().map(Scope::exists).collect();
        scopes.extend(raw.spec.scope_selector.match_expressions);
        Ok(Self {
            name: raw.metadata.name,
            spec_hard: raw.spec.hard,
            hard: raw.status.hard,
            used: raw.status.used,
            scopes,
        })
    }
}

#[cfg(test)]
mod tests;
