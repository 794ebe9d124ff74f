//! Kinds in OpenAPI documents: the registry describes built-in kinds, the
//! schema of their CustomResourceDefinition describes custom kinds.

use longshore_model::KindInfo;
use serde_json::{Map, Value, json};

use super::extension::{KIND, kind_value};
use crate::{definitions::DEFINITIONS, packages, registry};

/// A kind that a document describes.
pub trait Describe {
    /// The kind.
    fn info(&self) -> &KindInfo;

    /// The `openAPIV3Schema` of a custom kind.
    fn schema(&self) -> Option<&Value> {
        None
    }
}

impl Describe for KindInfo {
    fn info(&self) -> &KindInfo {
        self
    }
}

/// The name of a kind's definition: `io.k8s.api.batch.v1.Job`, or
/// `com.example.v1.Shoe` with the group reversed.
pub(super) fn name(info: &KindInfo) -> String {
    match registry().name_of(&info.gvk) {
        Some(name) => name.to_owned(),
        None => {
            let group: Vec<&str> = info.gvk.group.split('.').rev().collect();
            format!("{}.{}.{}", group.join("."), info.gvk.version, info.gvk.kind)
        }
    }
}

/// The fields that all objects or all lists have, taken from a built-in kind.
fn common(kind: &str) -> Map<String, Value> {
    let name = packages::definition("", "v1", kind);
    let found = name.and_then(|name| registry().entry(&name));
    let properties = found.and_then(|(_, schema)| schema["properties"].as_object());
    let fields = properties.into_iter().flatten();
    fields
        .filter(|(name, _)| matches!(name.as_str(), "apiVersion" | "kind" | "metadata"))
        .map(|(name, schema)| (name.clone(), schema.clone()))
        .collect()
}

/// The definition of a custom kind.
pub(super) fn definition(info: &KindInfo, schema: &Value) -> Value {
    let mut fields = schema.as_object().cloned().unwrap_or_default();
    let properties = fields
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Some(properties) = properties.as_object_mut() {
        properties.extend(common("ConfigMap"));
    }
    fields.insert("type".into(), "object".into());
    let gvk = &info.gvk;
    let kinds = json!([kind_value(&gvk.group, &gvk.version, &gvk.kind)]);
    fields.insert(KIND.into(), kinds);
    fields.into()
}

/// The name and definition of the list of a custom kind.
pub(super) fn list(info: &KindInfo) -> (String, Value) {
    let (gvk, list_kind) = (&info.gvk, info.list_kind());
    let mut properties = common("ConfigMapList");
    let items = json!({
        "description": format!("List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md", info.plural),
        "type": "array",
        "items": {"$ref": format!("{DEFINITIONS}{}", name(info))},
    });
    properties.insert("items".into(), items);
    let definition = json!({
        "description": format!("{list_kind} is a list of {}", gvk.kind),
        "type": "object",
        "required": ["items"],
        "properties": properties,
        KIND: [kind_value(&gvk.group, &gvk.version, &list_kind)],
    });
    (list_name(info), definition)
}

/// The name of the definition of a kind's list.
pub(super) fn list_name(info: &KindInfo) -> String {
    format!("{}List", name(info))
}

/// Converts a definition to v2. For a custom kind that preserves unknown
/// fields, the result contains only the kind: old clients would reject
/// undeclared fields.
pub(super) fn definition_for_v2(definition: &Value) -> Value {
    match definition.get(KIND) {
        Some(kinds) if keeps_unknown_fields(definition) => json!({"type": "object", KIND: kinds}),
        _ => for_v2(definition),
    }
}

fn keeps_unknown_fields(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
}

fn is_nullable(schema: &Value) -> bool {
    schema["nullable"] == true
}

/// Converts a schema to v2, which supports neither null nor alternatives. As in
/// Kubernetes, the type and the contents are omitted where null or unknown
/// fields are permitted; otherwise kubectl would reject them.
fn for_v2(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else {
        return schema.clone();
    };
    let (nullable, open) = (is_nullable(schema), keeps_unknown_fields(schema));
    let has_items = fields.contains_key("items") && !nullable && !open;
    let mut out = Map::new();
    for (name, value) in fields {
        let value = match (name.as_str(), value) {
            ("oneOf" | "anyOf" | "not" | "nullable" | "default", _) => None,
            // A reference with a description. Other rules in `allOf` are not
            // types.
            ("allOf", _) => value[0].get("$ref").map(|_| value.clone()),
            ("type", _) if nullable => None,
            ("type", Value::String(kind)) if kind == "object" && open => None,
            ("type", Value::String(kind)) if kind == "array" && !has_items => None,
            ("items" | "properties", _) if nullable || open => None,
            ("properties", Value::Object(inner)) => {
                let inner: Map<_, _> = inner.iter().map(|(k, v)| (k.clone(), for_v2(v))).collect();
                Some(inner.into())
            }
            ("items" | "additionalProperties", _) => Some(for_v2(value)),
            ("required", Value::Array(names)) => required(schema, names),
            _ => Some(value.clone()),
        };
        out.extend(value.map(|value| (name.clone(), value)));
    }
    out.into()
}

/// The required fields that must not be null.
fn required(schema: &Value, names: &[Value]) -> Option<Value> {
    if is_nullable(&schema["additionalProperties"]) {
        return None;
    }
    let is_open = is_nullable(schema) || keeps_unknown_fields(schema);
    let may_be_null = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        !is_open && is_nullable(&schema["properties"][name])
    };
    let left: Vec<Value> = (names.iter().filter(|name| !may_be_null(name)))
        .cloned()
        .collect();
    (!left.is_empty()).then(|| left.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v2_omits_null_alternatives_and_unknown_fields() {
        let kind = json!([{"group": "g", "version": "v1", "kind": "K"}]);
        let text =
            || json!({"type": "string", "pattern": "^a", "enum": ["a", "ab"], "minLength": 1});
        let mut with_default = text();
        with_default["default"] = "a".into();
        let table = [
            (text(), text()),
            (with_default, text()),
            (
                json!({"type": "object", "required": ["a", "b"], "properties": {
                    "a": {"type": "string", "nullable": true, "format": "byte"}, "b": text(),
                }}),
                json!({"type": "object", "required": ["b"], "properties": {
                    "a": {"format": "byte"}, "b": text(),
                }}),
            ),
            (
                json!({"type": "array", "nullable": true, "items": text(), "maxItems": 3}),
                json!({"maxItems": 3}),
            ),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                       "properties": {"a": text()}, "description": "any"}),
                json!({"x-kubernetes-preserve-unknown-fields": true, "description": "any"}),
            ),
            (
                json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}]}),
                json!({"x-kubernetes-int-or-string": true}),
            ),
            (
                json!({"type": "object", "required": ["a"],
                       "additionalProperties": {"type": "string", "nullable": true}}),
                json!({"type": "object", "additionalProperties": {}}),
            ),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                       "properties": {"a": text()}, KIND: kind}),
                json!({"type": "object", KIND: kind}),
            ),
        ];
        for (schema, expected) in table {
            assert_eq!(definition_for_v2(&schema), expected, "{schema}");
        }
    }
}
