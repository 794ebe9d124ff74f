//! Tolerations of node taints.

use std::{convert::Infallible, str::FromStr};

use longshore_client::k8s_openapi::api::core::v1 as core;
use longshore_model::name;
use serde::Deserialize;

use super::{ConfigError, Text, values::invalid_at};

/// A toleration of a node taint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Toleration {
    /// The taint's key. `None` matches all taints.
    pub key: Option<Text>,
    /// `Equal` or `Exists`.
    pub operator: Option<Text>,
    /// The taint's value.
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`. `None` matches all effects.
    pub effect: Option<Text>,
    /// The time in seconds for which a `NoExecute` taint is tolerated.
    pub seconds: Option<u32>,
}

const OPERATORS: [&str; 2] = ["Equal", "Exists"];
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

impl Toleration {
    /// The toleration as in a pod's spec.
    pub(super) fn to_kubernetes(&self) -> Result<core::Toleration, ConfigError> {
        if let Some(key) = &self.key {
            let check = name::label_key(key);
            check.map_err(|error| invalid_at("toleration key", key, error.rule()))?;
        }
        one_of("toleration operator", self.operator.as_ref(), &OPERATORS)?;
        one_of("toleration effect", self.effect.as_ref(), &EFFECTS)?;
        // Without a value, only existence can be checked.
        let operator = self.operator.clone().unwrap_or_else(|| {
            let default = if self.value.is_some() {
                "Equal"
            } else {
                "Exists"
            };
            default.into()
        });
        if self.key.is_none() && *operator != "Exists" {
            let rule = "a toleration without a key matches all taints: its operator must be Exists";
            return Err(invalid_at("toleration operator", &operator, rule));
        }
        Ok(core::Toleration {
            operator: Some(operator.into_inner()),
            key: self.key.as_ref().map(|key| key.to_string()),
            value: self.value.clone(),
            effect: self.effect.as_ref().map(|effect| effect.to_string()),
            toleration_seconds: self.seconds.map(i64::from),
        })
    }
}

/// kubectl's notation of taints: `nvidia.com/gpu=present:NoSchedule`.
impl FromStr for Toleration {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (pair, effect) = match text.rsplit_once(':') {
            Some((pair, effect)) => (pair, Some(effect.into())),
            None => (text, None),
        };
        let (key, value) = match pair.split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (pair, None),
        };
        Ok(Self {
            key: Some(key.into()),
            value,
            effect,
            ..Self::default()
        })
    }
}

fn one_of(what: &str, word: Option<&Text>, known: &[&str]) -> Result<(), ConfigError> {
    match word {
        Some(word) if !known.contains(&word.as_str()) => {
            let rule = format!("use one of {}", known.join(", "));
            Err(invalid_at(what, word, rule))
        }
        _ => Ok(()),
    }
}
