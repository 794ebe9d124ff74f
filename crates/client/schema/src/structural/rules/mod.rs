//! Validation of structural schemas: which `openAPIV3Schema`s API servers
//! accept.

mod openapi;
mod structure;

use longshore_model::{CauseList, StatusCause};
use serde_json::Value;

use super::{Structural, causes, is_meta, patterns};

/// The keywords that the root of a schema may use if the status is a
/// subresource.
const AT_ROOT: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]";

/// Validates a schema at `path`; `has_status` is whether its objects have the
/// status subresource.
#[must_use]
pub fn check(schema: &Value, path: &str, has_status: bool) -> Vec<StatusCause> {
    let mut out = CauseList::new();
    if !patterns::fit_size_limit(schema) {
        let most = patterns::MAX_SCHEMA_BYTES >> 20;
        let why = format!(
            "its patterns take more than {most} MiB of memory when they are compiled: use fewer or simpler ones"
        );
        out.push(causes::forbidden(path, &why));
        return out.into_vec();
    }
    if has_status {
        check_root(schema, path, &mut out);
    }
    if schema["nullable"] == true {
        let why = "nullable cannot be true at the root";
        out.push(causes::forbidden(&format!("{path}.nullable"), why));
    }
    let mut structure = CauseList::new();
    structure::check(schema, path, &mut structure);
    structure.sort_by(|a, b| (&a.field, &a.message).cmp(&(&b.field, &b.message)));
    if structure.is_empty() {
        let root = Structural::parse(schema);
        defaults(&root, path, false, &mut structure);
    }
    out.extend(structure);
    openapi::check(schema, path, &mut out);
    out.into_vec()
}

fn check_root(schema: &Value, path: &str, out: &mut CauseList) {
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

/// Defaults must be valid and must not contain unknown fields.
fn defaults(schema: &Structural, path: &str, in_meta: bool, out: &mut CauseList) {
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
        for cause in broken.iter_mut() {
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
