//! The structure of schemas: types and fields must be declared outside of
//! logical junctors, which may only constrain values.

use longshore_model::CauseList;
use serde_json::{Value, json};

use super::{has, list, properties, text};
use crate::structural::{causes, patterns};

/// Validates the structure of a schema.
pub(super) fn check(schema: &Value, path: &str, out: &mut CauseList) {
    structural(schema, Level::Root, path, out);
    complete(schema, path, out);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

fn is_int_or_string(any_of: &Value) -> bool {
    *any_of == json!([{"type": "integer"}, {"type": "string"}])
}

/// Checks that a schema is structural.
fn structural(schema: &Value, level: Level, path: &str, out: &mut CauseList) {
    let child = |name: &str| format!("{path}.{name}");
    let kind = text(schema, "type");
    let embedded = schema["x-kubernetes-embedded-resource"] == true;
    let preserves = schema["x-kubernetes-preserve-unknown-fields"] == true;
    let int_or_string = schema["x-kubernetes-int-or-string"] == true;
    if kind == "array" && !has(schema, "items") {
        out.push(causes::required(&child("items"), "must be specified"));
    }
    if schema["items"].is_object() {
        structural(&schema["items"], Level::Item, &child("items"), out);
    }
    for (name, property) in properties(schema) {
        let path = format!("{path}.properties[{name}]");
        structural(property, Level::Field, &path, out);
    }
    if has(schema, "additionalProperties") {
        let path = child("additionalProperties");
        if level == Level::Root {
            out.push(causes::forbidden(&path, "must not be used at the root"));
        }
        if schema["additionalProperties"].is_object() {
            structural(&schema["additionalProperties"], Level::Field, &path, out);
        }
    }
    if int_or_string && preserves {
        let why = "must be false if x-kubernetes-int-or-string is true";
        let path = child("x-kubernetes-preserve-unknown-fields");
        out.push(causes::invalid(&path, &true.into(), why));
    }
    if int_or_string && embedded {
        let why = "must be false if x-kubernetes-int-or-string is true";
        let path = child("x-kubernetes-embedded-resource");
        out.push(causes::invalid(&path, &true.into(), why));
    }
    let any_of = is_int_or_string(&schema["anyOf"]);
    let all_of = is_int_or_string(&schema["allOf"][0]["anyOf"]);
    value_rules(schema, any_of, all_of, path, out);
    let why = "must be object if x-kubernetes-embedded-resource is true";
    match kind {
        "object" => {}
        "" if embedded => out.push(causes::required(&child("type"), why)),
        kind if embedded => out.push(causes::invalid(&child("type"), &kind.into(), why)),
        "" if !int_or_string && !preserves => {
            let why = match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            };
            out.push(causes::required(&child("type"), why));
        }
        "" => {}
        kind if level == Level::Root => {
            let why = "must be object at the root";
            out.push(causes::invalid(&child("type"), &kind.into(), why));
        }
        _ => {}
    }
    if embedded && has(schema, "additionalProperties") {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        out.push(causes::forbidden(&child("additionalProperties"), why));
    }
    meta_rules(schema, level, embedded, path, out);
    if embedded && !preserves && properties(schema).next().is_none() {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        out.push(causes::required(&child("properties"), why));
    }
}

/// Checks what a schema declares for type and metadata.
fn meta_rules(schema: &Value, level: Level, embedded: bool, path: &str, out: &mut CauseList) {
    let checked = level == Level::Root || embedded;
    for name in ["kind", "apiVersion"] {
        let property = &schema["properties"][name];
        if checked && property.is_object() && text(property, "type") != "string" {
            let path = format!("{path}.properties[{name}].type");
            let kind = text(property, "type").into();
            out.push(causes::invalid(&path, &kind, "must be string"));
        }
    }
    let metadata = &schema["properties"]["metadata"];
    let Some(fields) = metadata.as_object() else {
        return;
    };
    let path = format!("{path}.properties[metadata]");
    if checked && text(metadata, "type") != "object" {
        let kind = text(metadata, "type").into();
        out.push(causes::invalid(
            &format!("{path}.type"),
            &kind,
            "must be object",
        ));
    }
    if level != Level::Root {
        return;
    }
    let names_only = properties(metadata).all(|(name, _)| name == "name" || name == "generateName");
    let has_other_fields = fields
        .keys()
        .any(|word| !matches!(word.as_str(), "type" | "default" | "properties"));
    if has_other_fields || !names_only {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        out.push(causes::forbidden(&path, why));
    }
}

/// Schemas in `allOf`, `anyOf`, `oneOf` and `not` may constrain values, but may
/// not declare structure.
fn value_rules(schema: &Value, any_of: bool, all_of: bool, path: &str, out: &mut CauseList) {
    for word in ["anyOf", "allOf", "oneOf"] {
        for (index, inner) in list(schema, word) {
            if word == "anyOf" && any_of {
                continue;
            }
            let skip = word == "allOf" && index == 0 && all_of;
            nested(inner, skip, &format!("{path}.{word}[{index}]"), out);
        }
    }
    if schema["not"].is_object() {
        nested(&schema["not"], false, &format!("{path}.not"), out);
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && let Err(error) = patterns::compile(pattern)
    {
        let why = format!("must be a valid regular expression, but isn't: {error}");
        let path = format!("{path}.pattern");
        out.push(causes::invalid(&path, &pattern.into(), &why));
    }
}

fn nested(schema: &Value, any_of: bool, path: &str, out: &mut CauseList) {
    value_rules(schema, any_of, false, path, out);
    if schema["items"].is_object() {
        nested(&schema["items"], false, &format!("{path}.items"), out);
    }
    for (name, property) in properties(schema) {
        nested(property, false, &format!("{path}.properties[{name}]"), out);
    }
    let not_false = |word: &str| schema.get(word).is_some_and(|value| *value == true);
    for (word, broken, why) in [
        (
            "type",
            !text(schema, "type").is_empty(),
            "must be empty to be structural",
        ),
        (
            "additionalProperties",
            has(schema, "additionalProperties"),
            "must be undefined to be structural",
        ),
        (
            "default",
            has(schema, "default"),
            "must be undefined to be structural",
        ),
        (
            "title",
            !text(schema, "title").is_empty(),
            "must be empty to be structural",
        ),
        (
            "description",
            !text(schema, "description").is_empty(),
            "must be empty to be structural",
        ),
        (
            "nullable",
            not_false("nullable"),
            "must be false to be structural",
        ),
        (
            "x-kubernetes-preserve-unknown-fields",
            not_false("x-kubernetes-preserve-unknown-fields"),
            "must be false to be structural",
        ),
        (
            "x-kubernetes-embedded-resource",
            not_false("x-kubernetes-embedded-resource"),
            "must be false to be structural",
        ),
        (
            "x-kubernetes-int-or-string",
            not_false("x-kubernetes-int-or-string"),
            "must be false to be structural",
        ),
        (
            "x-kubernetes-list-map-keys",
            has(schema, "x-kubernetes-list-map-keys"),
            "must be empty to be structural",
        ),
        (
            "x-kubernetes-list-type",
            has(schema, "x-kubernetes-list-type"),
            "must be undefined to be structural",
        ),
        (
            "x-kubernetes-map-type",
            has(schema, "x-kubernetes-map-type"),
            "must be undefined to be structural",
        ),
        (
            "x-kubernetes-validations",
            has(schema, "x-kubernetes-validations"),
            "must be empty to be structural",
        ),
        (
            "properties[metadata]",
            schema["properties"]["metadata"].is_object(),
            "must not be specified in a nested context",
        ),
    ] {
        if broken {
            out.push(causes::forbidden(&format!("{path}.{word}"), why));
        }
    }
}

/// Fields that are constrained in `allOf` and the like must be declared
/// outside.
fn complete(schema: &Value, path: &str, out: &mut CauseList) {
    for word in ["allOf", "anyOf", "oneOf"] {
        for (index, inner) in list(schema, word) {
            declared(schema, inner, path, &format!("{path}.{word}[{index}]"), out);
        }
    }
    if schema["not"].is_object() {
        declared(schema, &schema["not"], path, &format!("{path}.not"), out);
    }
    if schema["items"].is_object() {
        complete(&schema["items"], &format!("{path}.items"), out);
    }
    for (name, property) in properties(schema) {
        complete(property, &format!("{path}.properties[{name}]"), out);
    }
    if schema["additionalProperties"].is_object() {
        let path = format!("{path}.additionalProperties");
        complete(&schema["additionalProperties"], &path, out);
    }
}

fn declared(schema: &Value, inner: &Value, path: &str, because: &str, out: &mut CauseList) {
    for word in ["allOf", "anyOf", "oneOf"] {
        for (index, inner) in list(inner, word) {
            declared(
                schema,
                inner,
                path,
                &format!("{because}.{word}[{index}]"),
                out,
            );
        }
    }
    if inner["not"].is_object() {
        declared(schema, &inner["not"], path, &format!("{because}.not"), out);
    }
    if inner["items"].is_object() {
        let at = format!("{path}.items");
        let because = format!("{because}.items");
        if schema["items"].is_object() {
            declared(&schema["items"], &inner["items"], &at, &because, out);
        } else {
            out.push(causes::required(
                &at,
                &format!("because it is defined in {because}"),
            ));
        }
    }
    for (name, property) in properties(inner) {
        let at = format!("{path}.properties[{name}]");
        let because = format!("{because}.properties[{name}]");
        let own = &schema["properties"][name.as_str()];
        if own.is_object() {
            declared(own, property, &at, &because, out);
        } else {
            out.push(causes::required(
                &at,
                &format!("because it is defined in {because}"),
            ));
        }
    }
}
