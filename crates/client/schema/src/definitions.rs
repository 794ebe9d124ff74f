//! The schemas of the built-in types by name, in OpenAPI v3 style: the files
//! `facts/definitions.txt` and `facts/descriptions.txt`, which the test
//! `definitions` generates from the types of k8s-openapi.
//!
//! A line of both files is the name of a definition, a space, and JSON: the schema without
//! descriptions, or the descriptions by property. The description of the definition itself has the
//! key `""`. Most programs need only the type graph, which does not use the descriptions.

use std::{collections::BTreeMap, sync::OnceLock};

use serde::Deserialize;
use serde_json::{Map, Value};

static SCHEMAS: &str = include_str!("facts/definitions.txt");
static DESCRIPTIONS: &str = include_str!("facts/descriptions.txt");

/// The prefix of references to definitions in a document.
pub(crate) const DEFINITIONS: &str = "#/components/schemas/";

/// The part of a schema that the type graph uses.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Outline<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: Option<&'a str>,
    pub(crate) format: Option<&'a str>,
    #[serde(borrow)]
    pub(crate) properties: Option<BTreeMap<&'a str, Outline<'a>>>,
    pub(crate) items: Option<Box<Outline<'a>>>,
    pub(crate) additional_properties: Option<Box<Outline<'a>>>,
    #[serde(rename = "$ref")]
    reference: Option<&'a str>,
    all_of: Vec<Outline<'a>>,
}

impl<'a> Outline<'a> {
    /// The definition that the schema refers to, directly or through `allOf`.
    pub(crate) fn reference(&self) -> Option<&'a str> {
        self.reference
            .or_else(|| self.all_of.first()?.reference)?
            .strip_prefix(DEFINITIONS)
    }
}

/// The names of all definitions and what the type graph takes from them, sorted.
pub(crate) fn outlines() -> impl Iterator<Item = (&'static str, Outline<'static>)> {
    lines(SCHEMAS).map(|(name, schema)| (name, parsed(schema)))
}

/// All definitions, with descriptions; built on first use.
pub(crate) fn definitions() -> &'static Map<String, Value> {
    static ALL: OnceLock<Map<String, Value>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut definitions: Map<String, Value> = lines(SCHEMAS)
            .map(|(name, schema)| (name.to_owned(), parsed(schema)))
            .collect();
        for (name, texts) in lines(DESCRIPTIONS) {
            if let Some(definition) = definitions.get_mut(name) {
                describe(definition, parsed(texts));
            }
        }
        definitions
    })
}

fn describe(definition: &mut Value, texts: BTreeMap<String, Value>) {
    for (property, text) in texts {
        if property.is_empty() {
            definition["description"] = text;
        } else {
            definition["properties"][property]["description"] = text;
        }
    }
}

/// The definition that a schema refers to, directly or through `allOf`.
pub(crate) fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"]
        .as_str()
        .or_else(|| schema["allOf"][0]["$ref"].as_str())?
        .strip_prefix(DEFINITIONS)
}

/// The names of the definitions of kinds.
#[cfg(test)]
pub(crate) fn kinds() -> impl Iterator<Item = (&'static str, longshore_model::Gvk)> {
    definitions().iter().filter_map(|(name, definition)| {
        let kind = &definition.get("x-kubernetes-group-version-kind")?[0];
        let word = |key: &str| kind[key].as_str().unwrap_or_default();
        let api_version = match word("group") {
            "" => word("version").to_owned(),
            group => format!("{group}/{}", word("version")),
        };
        let gvk = longshore_model::Gvk::from_api_version(&api_version, word("kind"));
        Some((name.as_str(), gvk))
    })
}

fn lines(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.lines().filter_map(|line| line.split_once(' '))
}

fn parsed<T: Deserialize<'static>>(json: &'static str) -> T {
    serde_json::from_str(json).expect("the file is a part of the program, and tests read all of it")
}
