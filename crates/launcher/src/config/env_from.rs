//! Secrets and ConfigMaps whose keys all become variables.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    ConfigError, Text,
    values::{invalid_at, subdomain},
};

/// A Secret or ConfigMap whose keys all become variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnvFrom {
    /// The name of a Secret.
    pub secret: Option<Text>,
    /// The name of a ConfigMap.
    pub config_map: Option<Text>,
    /// The prefix of each variable name.
    pub prefix: Option<String>,
}

impl EnvFrom {
    /// The source as in a container's `envFrom`.
    pub(super) fn to_json(&self) -> Result<Value, ConfigError> {
        let mut source = match (&self.secret, &self.config_map) {
            (Some(secret), None) => {
                subdomain("secret", secret)?;
                json!({"secretRef": {"name": **secret}})
            }
            (None, Some(map)) => {
                subdomain("config_map", map)?;
                json!({"configMapRef": {"name": **map}})
            }
            _ => {
                let name = self.secret.clone().unwrap_or_default();
                let rule = "set exactly one of secret, config_map in each";
                return Err(invalid_at("env_from", &name, rule));
            }
        };
        if let Some(prefix) = &self.prefix {
            source["prefix"] = json!(prefix);
        }
        Ok(source)
    }
}
