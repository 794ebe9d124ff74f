//! OpenAPI v3: an index, and a JSON document for each group and version.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hasher},
};

use longshore_model::{KindInfo, release};
use serde_json::{Map, Value, json};

use super::{
    custom::Describe,
    extension::{KIND, kind_value},
    parameters::Parameter,
    paths::{self, Body, Operation, Path, ResponseBody},
    schemas,
};
use crate::{definitions::DEFINITIONS, packages};

/// The media types of patches; custom kinds support all except the last.
const PATCH_TYPES: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// The index at `/openapi/v3`: the URL of the document of each group and
/// version. The URL contains a hash of the document, so clients can cache it
/// forever.
#[must_use]
pub fn v3_index<K: Describe>(kinds: &[K]) -> Value {
    let mut paths = Map::new();
    for kind in kinds {
        let key = key_of(kind.info());
        if paths.contains_key(&key) {
            continue;
        }
        if let Some(document) = v3_document(kinds, &key) {
            let mut hasher = DefaultHasher::new();
            hasher.write(document.to_string().as_bytes());
            let address = format!("/openapi/v3/{key}?hash={:016X}", hasher.finish());
            paths.insert(key, json!({"serverRelativeURL": address}));
        }
    }
    json!({"paths": paths})
}

/// The document of a group and version as named in the index (`api/v1`,
/// `apis/batch/v1`); `None` if it has no kinds.
#[must_use]
pub fn v3_document<K: Describe>(kinds: &[K], group_version: &str) -> Option<Value> {
    let kinds: Vec<_> = kinds
        .iter()
        .filter(|kind| key_of(kind.info()) == group_version)
        .collect();
    if kinds.is_empty() {
        return None;
    }
    let paths: Map<String, Value> = kinds
        .iter()
        .flat_map(|kind| paths::of_kind(*kind))
        .map(|path| (path.path.clone(), path_value(&path)))
        .collect();
    let schemas: BTreeMap<_, _> = schemas::of_kinds(kinds);
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": release::VERSION},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

fn key_of(info: &KindInfo) -> String {
    info.api_path().trim_start_matches('/').to_owned()
}

pub(super) fn path_value(path: &Path) -> Value {
    let mut value: Map<String, Value> = path
        .operations
        .iter()
        .map(|operation| (operation.method.to_owned(), operation_value(operation)))
        .collect();
    let variables: Vec<_> = path
        .variables
        .iter()
        .map(|name| {
            json!({
                "name": name,
                "in": "path",
                "required": true,
                "schema": {"type": "string", "uniqueItems": true},
            })
        })
        .collect();
    if !variables.is_empty() {
        value.insert("parameters".to_owned(), variables.into());
    }
    value.into()
}

fn operation_value(operation: &Operation) -> Value {
    let (group, version, kind) = &operation.kind;
    let parameters: Vec<_> = operation.parameters.iter().map(parameter_value).collect();
    let mut value = json!({
        "description": operation.description,
        "operationId": operation.id,
        "parameters": parameters,
        "responses": responses(operation),
        "x-kubernetes-action": operation.action,
        KIND: kind_value(group, version, kind),
    });
    if let Some(body) = body(operation) {
        value["requestBody"] = body;
    }
    value
}

fn parameter_value((name, kind, description): &Parameter) -> Value {
    json!({
        "name": name,
        "in": "query",
        "description": description,
        "schema": {"type": kind, "uniqueItems": true},
    })
}

fn body(operation: &Operation) -> Option<Value> {
    let meta = |kind: &str| refers_to(&format!("{}.{kind}", packages::META));
    let (types, schema): (&[&str], _) = match operation.body {
        Body::Nothing => return None,
        Body::Object => (&["*/*"], object(operation)),
        Body::Patch if operation.custom => (&PATCH_TYPES[..3], meta("Patch")),
        Body::Patch => (&PATCH_TYPES, meta("Patch")),
        Body::DeleteOptions => (&["*/*"], meta("DeleteOptions")),
    };
    Some(json!({
        "content": content(types, &schema),
        "required": operation.body != Body::DeleteOptions,
    }))
}

fn responses(operation: &Operation) -> Value {
    let json = "application/json";
    let (types, schema): (&[&str], _) = match operation.answer {
        ResponseBody::Object => (&[json], object(operation)),
        ResponseBody::List => {
            let name = operation
                .definition
                .as_ref()
                .map(|name| format!("{name}List"));
            (
                &[json],
                name.map_or_else(|| json!({"type": "object"}), |name| refers_to(&name)),
            )
        }
        ResponseBody::Status => (&[json], refers_to(&format!("{}.Status", packages::META))),
        ResponseBody::Text => (&["text/plain"], json!({"type": "string"})),
    };
    let answer = |text| json!({"description": text, "content": content(types, &schema)});
    match operation.action {
        "post" => json!({"200": answer("OK"), "201": answer("Created")}),
        "put" | "patch" => json!({"200": answer("OK"), "201": answer("Created")}),
        "delete" => json!({"200": answer("OK"), "202": answer("Accepted")}),
        _ => json!({"200": answer("OK")}),
    }
}

fn object(operation: &Operation) -> Value {
    match &operation.definition {
        Some(name) => refers_to(name),
        None => json!({"type": "object"}),
    }
}

fn refers_to(name: &str) -> Value {
    json!({"$ref": format!("{DEFINITIONS}{name}")})
}

fn content(types: &[&str], schema: &Value) -> Value {
    types
        .iter()
        .map(|name| ((*name).to_owned(), json!({"schema": schema})))
        .collect()
}
