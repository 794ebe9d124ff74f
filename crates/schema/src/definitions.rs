//! The schemas of the built-in types by name, in OpenAPI v3 style.

use std::sync::OnceLock;

use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{
    packages,
    roots::{ROOTS, SHARED},
};

/// The prefix of references to definitions in a document.
pub(crate) const DEFINITIONS: &str = "#/components/schemas/";

/// All definitions; built on first use.
pub(crate) fn definitions() -> &'static Map<String, Value> {
    static ALL: OnceLock<Map<String, Value>> = OnceLock::new();
    ALL.get_or_init(build)
}

fn build() -> Map<String, Value> {
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
    definitions
}

/// The definition that a schema refers to, directly or through `allOf`.
pub(crate) fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"]
        .as_str()
        .or_else(|| schema["allOf"][0]["$ref"].as_str())?
        .strip_prefix(DEFINITIONS)
}

/// The definition of the list of a kind.
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
                "description": "The version of the list, and the token of its next page.",
                "$ref": format!("{DEFINITIONS}{}.ListMeta", packages::META),
            },
        },
        "required": ["items"],
    })
}

/// Converts a definition to the form that an API server publishes.
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
        // Any JSON value.
        Some("JSON") => {
            fields.remove("type");
        }
        _ => {}
    }
    // Metadata is optional in Kubernetes, although the Rust types require it.
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
        // `$ref` overrides all other keywords next to it, so a description
        // needs `allOf`.
        if property.len() > 1
            && let Some(reference) = property.remove("$ref")
        {
            property.insert("allOf".to_owned(), json!([{"$ref": reference}]));
        }
    }
}
