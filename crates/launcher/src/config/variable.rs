//! Environment variables: their values, or their sources in the cluster.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Value, json};

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
    /// The key in it; defaults to the name of the variable.
    pub key: Option<String>,
    /// A field of the pod, as in `spec.nodeName`.
    pub field: Option<String>,
}

impl VariableSource {
    /// The variable as in a container's `env`.
    pub(super) fn to_json(&self, name: &Text) -> Result<Value, ConfigError> {
        let key = self.key.as_deref().unwrap_or(name);
        let mut sources = Vec::new();
        for (what, field, object) in [
            ("secret", "secretKeyRef", &self.secret),
            ("config_map", "configMapKeyRef", &self.config_map),
        ] {
            if let Some(object) = object {
                subdomain(what, object)?;
                sources.push(json!({field: {"name": **object, "key": key}}));
            }
        }
        if let Some(path) = &self.field {
            sources.push(json!({"fieldRef": {"fieldPath": path}}));
        }
        match sources.as_slice() {
            [source] => Ok(json!({"name": **name, "valueFrom": source})),
            _ => {
                let rule = "set exactly one of secret, config_map, field";
                Err(invalid_at("env", name, rule))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(VariableVisitor)
    }
}

/// Unlike serde's untagged enums, it keeps the positions of the values in a source.
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
