//! Environment variables: their values, or their sources in the cluster.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Value, json};

use super::{
    ConfigError, Flags, Scalar, TaskOptions, Text,
    layers::Layers,
    values::{invalid, invalid_at, subdomain},
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

/// The variables of a role: those with values, and those with sources.
#[derive(Debug, Default)]
pub(super) struct Variables<'a> {
    values: BTreeMap<Text, String>,
    sources: BTreeMap<&'a Text, &'a VariableSource>,
}

impl<'a> Variables<'a> {
    /// Merges the variables of `options`, which are in ascending precedence, and of the
    /// command line.
    pub(super) fn merge<const N: usize>(
        options: Layers<'a, TaskOptions, N>,
        flags: &Flags,
    ) -> Result<Self, ConfigError> {
        let mut variables = Self::default();
        for (name, variable) in options.entries(|options| &options.env) {
            match variable {
                Variable::Plain(value) => variables.set(name.clone(), value.to_string()),
                Variable::From(source) => {
                    variables.remove(name);
                    variables.sources.insert(name, source);
                }
            }
        }
        for (name, value) in &flags.env_file {
            variables.set(name.as_str().into(), value.clone());
        }
        for flag in &flags.env {
            let pair = flag.split_once('=');
            let (name, value) = pair.ok_or_else(|| invalid("--env", flag, "write NAME=VALUE"))?;
            variables.set(name.into(), value.to_owned());
        }
        variables.check()?;
        Ok(variables)
    }

    fn set(&mut self, name: Text, value: String) {
        self.remove(&name);
        self.values.insert(name, value);
    }

    /// Removes a variable with its name, whose position is that of the overridden value.
    fn remove(&mut self, name: &Text) {
        self.sources.remove(name);
        self.values.remove(name);
    }

    fn check(&self) -> Result<(), ConfigError> {
        let mut names = self.values.keys().chain(self.sources.keys().copied());
        if let Some(name) = names.find(|name| !is_variable(name)) {
            let rule = "use letters, digits, '_', '-' and '.', not beginning with a digit";
            return Err(invalid_at("variable name", name, rule));
        }
        let mut values = self.values.iter();
        if let Some((name, _)) = values.find(|(_, value)| value.contains('\0')) {
            let rule = "its value contains a NUL character, which no variable can hold";
            return Err(invalid_at("variable", name, rule));
        }
        Ok(())
    }

    /// The variables with sources, as in a container's `env`.
    pub(super) fn sources_to_json(&self) -> Result<Vec<Value>, ConfigError> {
        let sources = self.sources.iter();
        sources.map(|(name, source)| source.to_json(name)).collect()
    }

    /// The variables with values.
    pub(super) fn into_values(self) -> BTreeMap<String, String> {
        let values = self.values.into_iter();
        values
            .map(|(name, value)| (name.into_inner(), value))
            .collect()
    }
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

impl VariableSource {
    /// The variable as in a container's `env`.
    fn to_json(&self, name: &Text) -> Result<Value, ConfigError> {
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
