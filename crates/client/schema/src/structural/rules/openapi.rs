//! The supported subset of OpenAPI and of the Kubernetes extensions.

use longshore_model::CauseList;
use serde_json::{Map, Value, json};

use super::{has, list, properties, text};
use crate::structural::{Type, causes, is_meta, strings};

/// Validates the keywords of a schema.
pub(super) fn check(schema: &Value, path: &str, out: &mut CauseList) {
    let context = Context {
        root: true,
        ..Context::default()
    };
    openapi(schema, path, context, out);
}

#[derive(Debug, Clone, Copy, Default)]
struct Context {
    root: bool,
    in_meta: bool,
    no_defaults: Option<&'static str>,
}

/// The supported subset of OpenAPI.
fn openapi(schema: &Value, path: &str, context: Context, out: &mut CauseList) {
    let child = |name: &str| format!("{path}.{name}");
    let inner = Context {
        root: false,
        ..context
    };
    let kind = text(schema, "type");
    if !kind.is_empty() && !Type::NAMES.contains(&kind) {
        let words = Type::NAMES.map(str::to_owned);
        out.push(causes::not_supported(&child("type"), &kind.into(), &words));
    }
    if let Some(why) = context.no_defaults.filter(|_| has(schema, "default")) {
        let why = format!("must not be set {why}");
        out.push(causes::forbidden(&child("default"), &why));
    }
    for word in [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ] {
        if has(schema, word) {
            out.push(causes::forbidden(
                &child(word),
                &format!("{word} is not supported"),
            ));
        }
    }
    if kind == "null" {
        let why = "type cannot be set to null, use nullable as an alternative";
        out.push(causes::forbidden(&child("type"), why));
    }
    if schema["items"].is_array() {
        let why = "items must be a schema object and not an array";
        out.push(causes::forbidden(&child("items"), why));
    }
    if schema["uniqueItems"] == true {
        let why =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        out.push(causes::forbidden(&child("uniqueItems"), why));
    }
    let additional = &schema["additionalProperties"];
    if has(schema, "additionalProperties") {
        if properties(schema).next().is_some() && *additional != true {
            let why = "additionalProperties and properties are mutual exclusive";
            out.push(causes::forbidden(&child("additionalProperties"), why));
        }
        if additional.is_object() {
            openapi(additional, &child("additionalProperties"), inner, out);
        }
    }
    let is_embedded = schema["x-kubernetes-embedded-resource"] == true;
    for (name, property) in properties(schema) {
        let mut inner = inner;
        if is_meta(name) && (context.root || is_embedded) {
            inner.in_meta = true;
            if context.root {
                inner.no_defaults = Some(match name.as_str() {
                    "metadata" => "in top-level metadata",
                    "kind" => "in top-level kind",
                    _ => "in top-level apiVersion",
                });
            }
        }
        openapi(property, &format!("{path}.properties[{name}]"), inner, out);
    }
    if schema["not"].is_object() {
        openapi(&schema["not"], &child("not"), inner, out);
    }
    for word in ["allOf", "oneOf", "anyOf"] {
        for (index, nested) in list(schema, word) {
            openapi(nested, &format!("{path}.{word}[{index}]"), inner, out);
        }
    }
    if schema["items"].is_object() {
        openapi(&schema["items"], &child("items"), inner, out);
    }
    if context.in_meta && is_embedded {
        let why = "must not be used inside of resource meta";
        out.push(causes::forbidden(
            &child("x-kubernetes-embedded-resource"),
            why,
        ));
    }
    extensions(schema, path, out);
}

/// The rules of the extensions.
fn extensions(schema: &Value, path: &str, out: &mut CauseList) {
    let child = |name: &str| format!("{path}.{name}");
    let kind = text(schema, "type");
    let must_be = |word: &str, why: &str, out: &mut CauseList| match kind {
        "" => out.push(causes::required(&child("type"), why)),
        kind if kind != word => {
            out.push(causes::invalid(&child("type"), &kind.into(), why));
        }
        _ => {}
    };
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let path = child("x-kubernetes-preserve-unknown-fields");
        let why = "must be true or undefined";
        out.push(causes::invalid(&path, &false.into(), why));
    }
    if has(schema, "x-kubernetes-map-type") {
        let why = "must be object if x-kubernetes-map-type is specified";
        must_be("object", why, out);
        let word = &schema["x-kubernetes-map-type"];
        let words = ["atomic".to_owned(), "granular".to_owned()];
        if !words.iter().any(|known| word == known) {
            out.push(causes::not_supported(
                &child("x-kubernetes-map-type"),
                word,
                &words,
            ));
        }
    }
    let list_type = text(schema, "x-kubernetes-list-type");
    if has(schema, "x-kubernetes-list-type") {
        let why = "must be array if x-kubernetes-list-type is specified";
        must_be("array", why, out);
        let words = ["atomic", "set", "map"].map(str::to_owned);
        if !words.iter().any(|known| known == list_type) {
            let path = child("x-kubernetes-list-type");
            out.push(causes::not_supported(&path, &list_type.into(), &words));
        }
    }
    let items = &schema["items"];
    if list_type == "set" && kind == "array" {
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let word = match text(items, "type") {
            "array" if !matches!(text(items, "x-kubernetes-list-type"), "" | "atomic") => {
                Some("x-kubernetes-list-type")
            }
            "object" if text(items, "x-kubernetes-map-type") != "atomic" => {
                Some("x-kubernetes-map-type")
            }
            _ => None,
        };
        if let Some(word) = word {
            let path = format!("{path}.items.{word}");
            out.push(causes::invalid(&path, &items[word], why));
        }
    }
    if matches!(list_type, "set" | "map") && items["nullable"] == true {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        out.push(causes::forbidden(&child("items.nullable"), &why));
    }
    map_keys(schema, list_type, path, out);
    for (index, rule) in list(schema, "x-kubernetes-validations") {
        if text(rule, "rule").trim().is_empty() {
            let path = format!("{path}.x-kubernetes-validations[{index}].rule");
            out.push(causes::required(&path, "rule is not specified"));
        }
    }
}

/// The keys of map lists.
fn map_keys(schema: &Value, list_type: &str, path: &str, out: &mut CauseList) {
    let child = |name: &str| format!("{path}.{name}");
    let keys = strings(schema.get("x-kubernetes-list-map-keys"));
    if !keys.is_empty() && list_type != "map" {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        let path = child("x-kubernetes-list-type");
        out.push(match list_type {
            "" => causes::required(&path, why),
            word => causes::invalid(&path, &word.into(), why),
        });
    }
    if list_type != "map" {
        return;
    }
    if keys.is_empty() {
        let why = "must not be empty if x-kubernetes-list-type is map";
        out.push(causes::required(&child("x-kubernetes-list-map-keys"), why));
    }
    let items = &schema["items"];
    if !items.is_object() {
        let why = "must have a schema if x-kubernetes-list-type is map";
        out.push(causes::required(&child("items"), why));
        return;
    }
    if text(items, "type") != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        let kind = text(items, "type").into();
        out.push(causes::invalid(&child("items.type"), &kind, why));
        return;
    }
    let none = Map::new();
    let known = items["properties"].as_object().unwrap_or(&none);
    let required = strings(items.get("required"));
    for (index, key) in keys.iter().enumerate() {
        let at = format!("{path}.items.properties[{key}]");
        let shown = json!(keys);
        let keys_path = child("x-kubernetes-list-map-keys");
        let Some(property) = known.get(key) else {
            let why = "entries must all be names of item properties";
            out.push(causes::invalid(&keys_path, &shown, why));
            continue;
        };
        if matches!(text(property, "type"), "array" | "object") {
            let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            let kind = text(items, "type").into();
            out.push(causes::invalid(&format!("{at}.type"), &kind, why));
        }
        if keys[..index].contains(key) {
            let why = "must not contain duplicate entries";
            out.push(causes::invalid(&keys_path, &shown, why));
        }
        if !required.contains(key) && !has(property, "default") {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            out.push(causes::required(&format!("{at}.default"), why));
        }
        if property["nullable"] == true {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            out.push(causes::forbidden(&format!("{at}.nullable"), why));
        }
    }
}
