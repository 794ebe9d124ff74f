//! Secrets and ConfigMaps whose keys all become variables.

use longshore_client::k8s_openapi::api::core::v1::{
    ConfigMapEnvSource, EnvFromSource, SecretEnvSource,
};
use serde::Deserialize;

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
    pub(super) fn to_kubernetes(&self) -> Result<EnvFromSource, ConfigError> {
        let mut source = EnvFromSource {
            prefix: self.prefix.clone(),
            ..EnvFromSource::default()
        };
        match (&self.secret, &self.config_map) {
            (Some(secret), None) => {
                subdomain("secret", secret)?;
                source.secret_ref = Some(SecretEnvSource {
                    name: secret.to_string(),
                    ..SecretEnvSource::default()
                });
            }
            (None, Some(map)) => {
                subdomain("config_map", map)?;
                source.config_map_ref = Some(ConfigMapEnvSource {
                    name: map.to_string(),
                    ..ConfigMapEnvSource::default()
                });
            }
            _ => {
                let name = self.secret.clone().unwrap_or_default();
                let rule = "set exactly one of secret, config_map in each";
                return Err(invalid_at("env_from", &name, rule));
            }
        }
        Ok(source)
    }
}
