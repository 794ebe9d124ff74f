//! The rules of structural schemas: what an `openAPIV3Schema` must be like
//! for API servers to take it.

use longshore_model::StatusCause;
use serde_json::{Map, Value, json};

use super::{Structural, Type, causes, checks, is_meta, strings};

/// What the root of a schema may say when objects have a status of their own.
const AT_ROOT: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]";

/// What is wrong with a schema at `path`; `has_status` says whether its objects
/// have the subresource.
#[must_use]
pub fn check(schema: &Value, path: &str, has_status: bool) -> Vec<StatusCause> {
    let mut out = Vec::new();
    if has_status {
        check_root(schema, path, &mut out);
    }
    if schema["nullable"] == true {
        let why = "nullable cannot be true at the root";
        out.push(causes::forbidden(&format!("{path}.nullable"), why));
    }
    let mut structure = Vec::new();
    structural(schema, Level::Root, path, &mut structure);
    complete(schema, path, &mut structure);
    structure.sort_by(|a, b| (&a.field, &a.message).cmp(&(&b.field, &b.message)));
    if structure.is_empty() {
        let root = Structural::parse(schema);
        defaults(&root, path, false, &mut structure);
    }
    out.extend(structure);
    let context = Context {
        root: true,
        ..Context::default()
    };
    openapi(schema, path, context, &mut out);
    out
}

fn check_root(schema: &Value, path: &str, out: &mut Vec<StatusCause>) {
    if let Some(kind) = schema["type"].as_str().filter(|kind| *kind != "object") {
        let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        out.push(causes::invalid(&format!("{path}.type"), &kind.into(), why));
    }
    let forbidden = [
        "$ref",
        "$schema",
        "additionalItems",
        "additionalProperties",
        "allOf",
        "anyOf",
        "default",
        "definitions",
        "dependencies",
        "enum",
        "id",
        "maxProperties",
        "minProperties",
        "not",
        "oneOf",
        "patternProperties",
    ];
    if forbidden.iter().any(|word| schema.get(word).is_some()) {
        let why = format!(
            "only {AT_ROOT} fields are allowed at the root of the schema if the status subresource is enabled"
        );
        out.push(causes::invalid(path, schema, &why));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

fn text<'a>(schema: &'a Value, name: &str) -> &'a str {
    schema[name].as_str().unwrap_or_default()
}

fn has(schema: &Value, name: &str) -> bool {
    schema.get(name).is_some_and(|value| !value.is_null())
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn list<'a>(schema: &'a Value, name: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    schema[name].as_array().into_iter().flatten().enumerate()
}

fn is_int_or_string(any_of: &Value) -> bool {
    *any_of == json!([{"type": "integer"}, {"type": "string"}])
}

/// The shape that a structural schema must have.
fn structural(schema: &Value, level: Level, path: &str, out: &mut Vec<StatusCause>) {
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

/// What a schema may say of type and metadata.
fn meta_rules(
    schema: &Value,
    level: Level,
    embedded: bool,
    path: &str,
    out: &mut Vec<StatusCause>,
) {
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
    let else_said = fields
        .keys()
        .any(|word| !matches!(word.as_str(), "type" | "default" | "properties"));
    if else_said || !names_only {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        out.push(causes::forbidden(&path, why));
    }
}

/// What stands under `allOf`, `anyOf`, `oneOf` and `not` checks values, and
/// says nothing of their structure.
fn value_rules(schema: &Value, any_of: bool, all_of: bool, path: &str, out: &mut Vec<StatusCause>) {
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
        && let Err(error) = checks::compile(pattern)
    {
        let why = format!("must be a valid regular expression, but isn't: {error}");
        let path = format!("{path}.pattern");
        out.push(causes::invalid(&path, &pattern.into(), &why));
    }
}

fn nested(schema: &Value, any_of: bool, path: &str, out: &mut Vec<StatusCause>) {
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

/// Whatever is checked under `allOf` and the like must be declared outside.
fn complete(schema: &Value, path: &str, out: &mut Vec<StatusCause>) {
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

fn declared(schema: &Value, inner: &Value, path: &str, because: &str, out: &mut Vec<StatusCause>) {
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

/// Defaults must be values the schema takes, without unknown fields.
fn defaults(schema: &Structural, path: &str, in_meta: bool, out: &mut Vec<StatusCause>) {
    if let Some(default) = schema.default.as_ref().filter(|_| !in_meta) {
        let at = format!("{path}.default");
        let mut pruned = default.clone();
        schema.prune(&mut pruned);
        if pruned != *default {
            out.push(causes::invalid(
                &at,
                default,
                "must not have unknown fields",
            ));
        }
        let mut broken = schema.validate("", default);
        for cause in &mut broken {
            cause.field = match cause.field.as_str() {
                "<nil>" => at.clone(),
                below => format!("{at}.{below}"),
            };
        }
        out.extend(broken);
    }
    if let Some(items) = schema.items.as_deref() {
        defaults(items, &format!("{path}.items"), in_meta, out);
    }
    for (name, property) in &schema.properties {
        let in_meta = in_meta || (schema.embedded && is_meta(name));
        defaults(
            property,
            &format!("{path}.properties[{name}]"),
            in_meta,
            out,
        );
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Context {
    root: bool,
    in_meta: bool,
    no_defaults: Option<&'static str>,
}

/// What of OpenAPI can be used.
fn openapi(schema: &Value, path: &str, context: Context, out: &mut Vec<StatusCause>) {
    let child = |name: &str| format!("{path}.{name}");
    let inner = Context {
        root: false,
        ..context
    };
    let kind = text(schema, "type");
    if !kind.is_empty() && !Type::WORDS.contains(&kind) {
        let words = Type::WORDS.map(str::to_owned);
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

/// The extensions' own rules.
fn extensions(schema: &Value, path: &str, out: &mut Vec<StatusCause>) {
    let child = |name: &str| format!("{path}.{name}");
    let kind = text(schema, "type");
    let must_be = |word: &str, why: &str, out: &mut Vec<StatusCause>| match kind {
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

/// The keys of lists that are maps.
fn map_keys(schema: &Value, list_type: &str, path: &str, out: &mut Vec<StatusCause>) {
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
