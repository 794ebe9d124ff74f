//! Pod templates as written.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use longshore_model::yaml::{self, Unique};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value, json};

use super::{ConfigError, Text, source::read_text, values::invalid_at};

/// A pod template to merge over the generated one, or the file that contains it.
#[derive(Debug, Clone, PartialEq)]
pub enum Template {
    /// A YAML file, relative to longshore.toml.
    File(PathBuf),
    /// The template itself.
    Table(BTreeMap<Text, toml::Value>),
}

/// The fields of a pod template.
const FIELDS: [&str; 2] = ["metadata", "spec"];

impl Template {
    /// The template as JSON, as in Kubernetes. `folder` is the folder of longshore.toml.
    pub(super) fn to_json(&self, folder: Option<&Path>) -> Result<Value, ConfigError> {
        let fields: BTreeMap<Text, Value> = match self {
            Self::Table(table) => {
                let fields = table.iter();
                fields
                    .map(|(name, value)| (name.clone(), json!(value)))
                    .collect()
            }
            Self::File(file) => match read(file, folder)? {
                Value::Object(fields) => {
                    let fields = fields.into_iter();
                    fields.map(|(name, value)| (name.into(), value)).collect()
                }
                other => {
                    let rule = "use a pod template, with metadata and spec";
                    return Err(invalid_at("template", &other.to_string().into(), rule));
                }
            },
        };
        if let Some(field) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            let rule = "a pod template has only metadata and spec";
            return Err(invalid_at("template", field, rule));
        }
        let fields = fields.into_iter();
        let fields: Map<String, Value> = fields
            .map(|(name, value)| (name.into_inner(), value))
            .collect();
        Ok(Value::Object(fields))
    }
}

/// A file name, which is relative to the current folder.
#[cfg(feature = "clap")]
impl From<PathBuf> for Template {
    fn from(path: PathBuf) -> Self {
        Self::File(std::path::absolute(&path).unwrap_or(path))
    }
}

fn read(file: &Path, folder: Option<&Path>) -> Result<Value, ConfigError> {
    let path = folder.map_or_else(|| file.to_owned(), |folder| folder.join(file));
    let text = read_text(&path).map_err(|source| ConfigError::Read {
        path: path.clone(),
        source,
    })?;
    let syntax = |message: String| ConfigError::Syntax {
        path: path.clone(),
        message,
    };
    yaml::check(text.as_bytes()).map_err(|error| syntax(error.to_string()))?;
    let read = serde_yaml_ng::from_str::<Unique>(&text);
    let Unique(value) = read.map_err(|error| syntax(error.to_string()))?;
    Ok(value)
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TemplateVisitor)
    }
}

/// Unlike serde's untagged enums, this visitor keeps the positions of the fields.
struct TemplateVisitor;

impl<'de> Visitor<'de> for TemplateVisitor {
    type Value = Template;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a file name, or a pod template as a table")
    }

    fn visit_str<E: Error>(self, file: &str) -> Result<Template, E> {
        Ok(Template::File(file.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Template, A::Error> {
        BTreeMap::deserialize(MapAccessDeserializer::new(table)).map(Template::Table)
    }
}
