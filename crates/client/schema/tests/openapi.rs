//! The OpenAPI v3 documents, as kubectl reads them.

#![allow(clippy::unwrap_used)]

use longshore_model::kind::BUILTIN;
use longshore_schema::openapi::{V2Part, v2_protobuf, v3_document, v3_index};
use serde_json::{Value, json};

const KIND: &str = "x-kubernetes-group-version-kind";

fn document(group_version: &str) -> Value {
    v3_document(BUILTIN, group_version).unwrap()
}

/// Follows the schema of a property, like kubectl's patches.
fn property<'a>(document: &'a Value, schema: &'a Value, name: &str) -> &'a Value {
    let reference = schema["$ref"]
        .as_str()
        .or_else(|| schema["allOf"][0]["$ref"].as_str());
    let schema = match reference {
        Some(reference) => {
            let name = reference.strip_prefix("#/components/schemas/").unwrap();
            &document["components"]["schemas"][name]
        }
        None => schema,
    };
    let found = &schema["properties"][name];
    assert!(found.is_object(), "no property {name}");
    found
}

#[test]
fn the_index_lists_a_document_for_each_group_and_version() {
    let index = v3_index(BUILTIN);
    let paths = index["paths"].as_object().unwrap();
    for info in BUILTIN {
        let key = info.api_path().trim_start_matches('/').to_owned();
        let address = paths[&key]["serverRelativeURL"].as_str().unwrap();
        assert!(
            address.starts_with(&format!("/openapi/v3/{key}?hash=")),
            "{address}"
        );
        assert!(v3_document(BUILTIN, &key).is_some());
    }
    assert_eq!(index, v3_index(BUILTIN));
    assert!(v3_document(BUILTIN, "apis/nothing/v1").is_none());
}

#[test]
fn the_url_of_a_document_changes_with_its_content() {
    let all = v3_index(BUILTIN)["paths"]["api/v1"].clone();
    let fewer = v3_index(&BUILTIN[1..])["paths"]["api/v1"].clone();
    assert_ne!(all, fewer);
}

#[test]
fn every_reference_resolves_within_its_document() {
    fn check(value: &Value, schemas: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    let name = reference.strip_prefix("#/components/schemas/").unwrap();
                    assert!(schemas[name].is_object(), "{reference}");
                }
                fields.values().for_each(|value| check(value, schemas));
            }
            Value::Array(items) => items.iter().for_each(|item| check(item, schemas)),
            _ => {}
        }
    }
    for group_version in v3_index(BUILTIN)["paths"].as_object().unwrap().keys() {
        let document = document(group_version);
        check(&document, &document["components"]["schemas"]);
    }
}

#[test]
fn kinds_are_found_by_their_extension() {
    for info in BUILTIN {
        let document = document(info.api_path().trim_start_matches('/'));
        let kind = json!({
            "group": info.gvk.group, "version": info.gvk.version, "kind": info.gvk.kind,
        });
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let marked = schemas
            .values()
            .filter(|schema| schema[KIND] == json!([kind]))
            .count();
        assert_eq!(marked, 1, "{}", info.gvk);
        let patch = document["paths"]
            .as_object()
            .unwrap()
            .values()
            .map(|path| &path["patch"])
            .find(|patch| patch[KIND] == kind)
            .unwrap();
        let names: Vec<_> = patch["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| &p["name"])
            .collect();
        assert_eq!(
            names,
            ["dryRun", "fieldManager", "fieldValidation", "force"]
        );
        assert_eq!(patch["x-kubernetes-action"], "patch");
    }
}

#[test]
fn properties_have_patch_and_list_extensions() {
    let document = document("apis/batch/v1");
    let mut at = &document["components"]["schemas"]["io.k8s.api.batch.v1.Job"];
    for name in ["spec", "template", "spec", "containers"] {
        at = property(&document, at, name);
    }
    assert_eq!(at["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(at["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(at["x-kubernetes-list-type"], "map");
    let ports = property(&document, &at["items"], "ports");
    assert_eq!(ports["x-kubernetes-patch-merge-key"], "containerPort");
    assert_eq!(
        ports["x-kubernetes-list-map-keys"],
        json!(["containerPort", "protocol"])
    );
    let command = property(&document, &at["items"], "command");
    assert_eq!(command["x-kubernetes-list-type"], "atomic");
    assert!(command.get("x-kubernetes-patch-strategy").is_none());
}

#[test]
fn a_custom_kind_has_paths_but_no_schema() {
    let mut shoe = BUILTIN[0].clone();
    shoe.gvk = longshore_model::Gvk::from_api_version("shop.x.k8s.io/v1", "Shoe");
    shoe.plural = "shoes".into();
    let document = v3_document(&[shoe.clone()], "apis/shop.x.k8s.io/v1").unwrap();
    let path = &document["paths"]["/apis/shop.x.k8s.io/v1/namespaces/{namespace}/shoes/{name}"];
    assert_eq!(path["get"][KIND]["kind"], "Shoe");
    let answer = &path["get"]["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(answer, &json!({"type": "object"}));
    let parts: &[std::sync::Arc<V2Part>] = &[];
    assert!(!v2_protobuf(&[shoe], parts).is_empty());
}
