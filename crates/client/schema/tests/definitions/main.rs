//! Generates the definitions of the built-in types from `k8s-openapi`: with
//! `LONGSHORE_UPDATE_FACTS=1`, the test writes them to `src/facts`. The program contains the
//! files and not the generator, which is 3 MB of code.

#![allow(clippy::unwrap_used)]

mod roots;

use std::{collections::BTreeMap, fmt::Write, fs, path::Path};

use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::roots::{ROOTS, Root, SHARED};

/// The prefix of references to definitions.
const DEFINITIONS: &str = "#/components/schemas/";

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The key of a definition's own description, alongside the descriptions of its properties.
const OWN: &str = "";

#[test]
fn the_definitions_are_those_of_the_types() {
    let mut schemas = String::new();
    let mut descriptions = String::new();
    for (name, mut definition) in definitions() {
        let texts = take_descriptions(&mut definition);
        writeln!(schemas, "{name} {definition}").unwrap();
        if !texts.is_empty() {
            writeln!(descriptions, "{name} {}", json!(texts)).unwrap();
        }
    }
    check("definitions.txt", &schemas);
    check("descriptions.txt", &descriptions);
}

fn check(file: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/facts")
        .join(file);
    if std::env::var_os("LONGSHORE_UPDATE_FACTS").is_some() {
        fs::write(&path, expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "{file}: {UPDATE}");
    }
    assert_eq!(found.len(), expected.len(), "{file}: {UPDATE}");
}

const UPDATE: &str = "run this test with LONGSHORE_UPDATE_FACTS=1";

/// Removes the descriptions from a definition, and returns them by property.
fn take_descriptions(definition: &mut Value) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let mut take = |key: &str, schema: &mut Value| {
        if let Some(Value::String(text)) = schema.as_object_mut().unwrap().remove("description") {
            texts.insert(key.to_owned(), text);
        }
    };
    take(OWN, definition);
    let properties = definition.get_mut("properties");
    for (name, property) in properties
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
    {
        take(name, property);
    }
    texts
}

/// The definitions by name.
fn definitions() -> Map<String, Value> {
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
        let name = (root.name)();
        definitions[name.as_ref()]["x-kubernetes-group-version-kind"] = kinds(root, root.kind);
        if let Some(list_kind) = root.list_kind {
            let package = name.strip_suffix(root.kind).unwrap();
            let mut list = list_definition(&name, root.kind);
            list["x-kubernetes-group-version-kind"] = kinds(root, list_kind);
            definitions.insert(format!("{package}{list_kind}"), list);
        }
    }
    for (name, definition) in &mut definitions {
        correct(name, definition);
    }
    definitions
}

fn kinds(root: &Root, kind: &str) -> Value {
    json!([{"group": root.group, "version": root.version, "kind": kind}])
}

/// The definition of the list of a kind.
fn list_definition(name: &str, kind: &str) -> Value {
    json!({
        "description": format!("A list of {kind} objects."),
        "type": "object",
        "properties": {
            "apiVersion": {"description": "The version of the list's format.", "type": "string"},
            "items": {
                "description": format!("The {kind} objects."),
                "type": "array",
                "items": {"$ref": format!("{DEFINITIONS}{name}")},
            },
            "kind": {"description": "The kind of the list.", "type": "string"},
            "metadata": {
                "description": "The version of the list, and the token of its next page.",
                "$ref": format!("{DEFINITIONS}{META}.ListMeta"),
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
