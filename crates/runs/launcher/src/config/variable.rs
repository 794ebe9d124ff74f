//! Environment variables: their values, or their sources in the cluster.

use std::fmt;

use longshore_client::k8s_openapi::api::core::v1::{
    ConfigMapKeySelector, EnvVar, EnvVarSource, ObjectFieldSelector, SecretKeySelector,
};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::{
    ConfigError, Scalar, Text,
    values::{invalid_at, subdomain},
};

/// The value of a variable, or its source.
#[derive(Debug, Clone, PartialEq)]
pub enum Variable {
    /// The value.
    Plain(Scalar),
    /// A key of a Secret or a ConfigMap, or a field of the pod.
    From(VariableSource),
}

/// The source of a variable: a Secret, a ConfigMap, or a field of the pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VariableSource {
    /// The name of a Secret.
    pub secret: Option<Text>,
    /// The name of a ConfigMap.
    pub config_map: Option<Text>,
    /// The key in the Secret or ConfigMap. Defaults to the name of the variable.
    pub key: Option<String>,
    /// A field of the pod, as in `spec.nodeName`.
    pub field: Option<String>,
}

impl VariableSource {
    /// The variable as in a container's `env`.
    pub(super) fn to_kubernetes(&self, name: &Text) -> Result<EnvVar, ConfigError> {
        let key = self.key.as_deref().unwrap_or(name);
        let mut source = EnvVarSource::default();
        if let Some(secret) = &self.secret {
            subdomain("secret", secret)?;
            source.secret_key_ref = Some(SecretKeySelector {
                name: secret.to_string(),
                key: key.to_owned(),
                ..SecretKeySelector::default()
            });
        }
        if let Some(map) = &self.config_map {
            subdomain("config_map", map)?;
            source.config_map_key_ref = Some(ConfigMapKeySelector {
                name: map.to_string(),
                key: key.to_owned(),
                ..ConfigMapKeySelector::default()
            });
        }
        if let Some(path) = &self.field {
            source.field_ref = Some(ObjectFieldSelector {
                field_path: path.clone(),
                ..ObjectFieldSelector::default()
            });
        }
        let is_set = [
            self.secret.is_some(),
            self.config_map.is_some(),
            self.field.is_some(),
        ];
        if is_set.into_iter().filter(|is_set| *is_set).count() != 1 {
            let rule = "set exactly one of secret, config_map, field";
            return Err(invalid_at("env", name, rule));
        }
        Ok(EnvVar {
            name: name.to_string(),
            value_from: Some(source),
            ..EnvVar::default()
        })
    }
}

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(VariableVisitor)
    }
}

/// Unlike serde's untagged enums, this visitor keeps the positions of the values in a source.
struct VariableVisitor;

impl<'de> Visitor<'de> for VariableVisitor {
    type Value = Variable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number, true, false, or a source, as in { secret = \"name\", key = \"key\" }")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Variable, E> {
        Ok(Variable::Plain(Scalar::Text(value.to_owned())))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Variable, E> {
        Ok(Variable::Plain(Scalar::Integer(value)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Variable, E> {
        Ok(Variable::Plain(Scalar::Number(value)))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Variable, E> {
        Ok(Variable::Plain(Scalar::Truth(value)))
    }

    fn visit_map<A: MapAccess<'de>>(self, source: A) -> Result<Variable, A::Error> {
        VariableSource::deserialize(MapAccessDeserializer::new(source)).map(Variable::From)
    }
}
