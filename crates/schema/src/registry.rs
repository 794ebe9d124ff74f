//! The registry: every definition by name, and the type graph over them.

use std::sync::OnceLock;

use longshore_model::Gvk;
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{
    facts,
    graph::{Graph, TypeRef},
    packages,
    roots::{ROOTS, SHARED},
};

/// Where definitions stand in a document, as references name it.
pub(crate) const DEFINITIONS: &str = "#/components/schemas/";

/// The definitions of the built-in types, and the graph over them.
#[derive(Debug)]
pub struct Registry {
    definitions: Map<String, Value>,
    pub(crate) graph: Graph,
}

/// The registry; built by the first call, in some milliseconds.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(Registry::build)
}

impl Registry {
    /// The schema of a type, in the manner of OpenAPI v3: references are
    /// `#/components/schemas/…`.
    ///
    /// ```
    /// let pod = longshore_schema::registry().definition("io.k8s.api.core.v1.Pod").unwrap();
    /// assert!(pod["properties"]["spec"].is_object());
    /// ```
    #[must_use]
    pub fn definition(&self, name: &str) -> Option<&Value> {
        self.definitions.get(name)
    }

    /// A definition under its name as it is kept here.
    pub(crate) fn entry(&self, name: &str) -> Option<(&str, &Value)> {
        self.definitions
            .get_key_value(name)
            .map(|(name, value)| (name.as_str(), value))
    }

    /// The names of all definitions, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions.keys().map(String::as_str)
    }

    /// The name of the definition of a kind; nothing if it is not built in.
    #[must_use]
    pub fn name_of(&self, gvk: &Gvk) -> Option<&str> {
        let name = packages::definition(&gvk.group, &gvk.version, &gvk.kind)?;
        self.definitions
            .get_key_value(&name)
            .map(|(name, _)| name.as_str())
    }

    /// The type of a kind; nothing if it is not built in.
    #[must_use]
    pub fn root(&self, gvk: &Gvk) -> Option<TypeRef> {
        self.graph.definition(self.name_of(gvk)?)
    }

    /// The type of a definition by its name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<TypeRef> {
        self.graph.definition(name)
    }

    fn build() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = DEFINITIONS.into();
            settings.meta_schema = None;
        });
        let mut generator = SchemaGenerator::new(settings);
        for add in SHARED {
            add(&mut generator);
        }
        for root in ROOTS {
            (root.add)(&mut generator);
        }
        let mut definitions = generator.take_definitions(false);
        for root in ROOTS {
            let Some(list_kind) = root.list_kind else {
                continue;
            };
            let Some(package) = packages::of(root.group, root.version) else {
                continue;
            };
            definitions.insert(
                format!("{package}.{list_kind}"),
                list_definition(&package, root.kind),
            );
        }
        for (name, definition) in &mut definitions {
            correct(name, definition);
        }
        let graph = Graph::build(&definitions, &facts::read());
        Self { definitions, graph }
    }
}

/// The definition of a kind's lists.
fn list_definition(package: &str, kind: &str) -> Value {
    json!({
        "description": format!("A list of {kind} objects."),
        "type": "object",
        "properties": {
            "apiVersion": {"description": "The version of the list's format.", "type": "string"},
            "items": {
                "description": format!("The {kind} objects."),
                "type": "array",
                "items": {"$ref": format!("{DEFINITIONS}{package}.{kind}")},
            },
            "kind": {"description": "The kind of the list.", "type": "string"},
            "metadata": {
                "description": "The list's version, and how to go on with it.",
                "$ref": format!("{DEFINITIONS}{}.ListMeta", packages::META),
            },
        },
        "required": ["items"],
    })
}

/// Gives a definition the form that an API server publishes.
fn correct(name: &str, definition: &mut Value) {
    let Some(fields) = definition.as_object_mut() else {
        return;
    };
    match name.rsplit('.').next() {
        Some("Quantity") => {
            fields.remove("x-kubernetes-int-or-string");
            fields.insert(
                "oneOf".to_owned(),
                json!([{"type": "string"}, {"type": "number"}]),
            );
        }
        Some("IntOrString") => {
            fields.remove("x-kubernetes-int-or-string");
            fields.insert("format".to_owned(), "int-or-string".into());
            fields.insert(
                "oneOf".to_owned(),
                json!([{"type": "integer"}, {"type": "string"}]),
            );
        }
        // Any JSON at all.
        Some("JSON") => {
            fields.remove("type");
        }
        _ => {}
    }
    // No type of Kubernetes asks for metadata, whatever Rust's types say.
    if let Some(required) = fields.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|field| field != "metadata");
        if required.is_empty() {
            fields.remove("required");
        }
    }
    let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for property in properties.values_mut().filter_map(Value::as_object_mut) {
        // Beside `$ref` every other word is ignored: a description needs `allOf`.
        if property.len() > 1
            && let Some(reference) = property.remove("$ref")
        {
            property.insert("allOf".to_owned(), json!([{"$ref": reference}]));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use longshore_model::kind::BUILTIN;

    use super::*;

    #[test]
    fn every_kind_served_has_a_definition_and_a_list() {
        for info in BUILTIN {
            let name = registry()
                .name_of(&info.gvk)
                .unwrap_or_else(|| panic!("{}", info.gvk));
            assert!(registry().definition(name).unwrap()["properties"]["metadata"].is_object());
            assert!(
                registry().definition(&format!("{name}List")).is_some(),
                "{name}"
            );
            assert!(registry().root(&info.gvk).is_some());
        }
    }

    #[test]
    fn every_root_has_the_name_its_group_says() {
        for root in ROOTS {
            let name = packages::definition(root.group, root.version, root.kind).unwrap();
            assert!(registry().definition(&name).is_some(), "{name}");
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn check(value: &Value) {
            match value {
                Value::Object(fields) => {
                    if let Some(Value::String(reference)) = fields.get("$ref") {
                        let name = reference.strip_prefix(DEFINITIONS).unwrap();
                        assert!(registry().definition(name).is_some(), "{reference}");
                    }
                    fields.values().for_each(check);
                }
                Value::Array(items) => items.iter().for_each(check),
                _ => {}
            }
        }
        for name in registry().names() {
            check(registry().definition(name).unwrap());
        }
        assert!(registry().names().count() > 400);
    }
}
