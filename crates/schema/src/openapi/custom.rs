//! Kinds as documents describe them: built-in ones by the registry, custom
//! ones by the schema of their definition.

use longshore_model::KindInfo;
use serde_json::{Map, Value, json};

use super::schemas::{KIND, kind_value};
use crate::{packages, registry, registry::DEFINITIONS};

/// A kind to describe in a document.
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
/// `com.example.v1.Shoe`, with the group backwards.
pub(super) fn name(info: &KindInfo) -> String {
    match registry().name_of(&info.gvk) {
        Some(name) => name.to_owned(),
        None => {
            let group: Vec<&str> = info.gvk.group.split('.').rev().collect();
            format!("{}.{}.{}", group.join("."), info.gvk.version, info.gvk.kind)
        }
    }
}

/// The definition of a custom kind.
pub(super) fn definition(info: &KindInfo, schema: &Value) -> Value {
    let mut fields = schema.as_object().cloned().unwrap_or_default();
    let properties = fields
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Some(properties) = properties.as_object_mut() {
        let own = json!({
            "apiVersion": {"description": "The version of the object's format.", "type": "string"},
            "kind": {"description": "The kind of the object.", "type": "string"},
            "metadata": {
                "description": "The object's name, labels, and what the server knows of it.",
                "allOf": [{"$ref": format!("{DEFINITIONS}{}.ObjectMeta", packages::META)}],
            },
        });
        if let Value::Object(own) = own {
            properties.extend(own);
        }
    }
    fields.insert("type".into(), "object".into());
    let gvk = &info.gvk;
    let kinds = json!([kind_value(&gvk.group, &gvk.version, &gvk.kind)]);
    fields.insert(KIND.into(), kinds);
    fields.into()
}

/// The name and definition of a custom kind's lists.
pub(super) fn list(info: &KindInfo) -> (String, Value) {
    let (gvk, list_kind) = (&info.gvk, info.list_kind());
    let definition = json!({
        "description": format!("{list_kind} is a list of {}", gvk.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"description": "The version of the list's format.", "type": "string"},
            "items": {
                "description": format!("The {} objects.", gvk.kind),
                "type": "array",
                "items": {"$ref": format!("{DEFINITIONS}{}", name(info))},
            },
            "kind": {"description": "The kind of the list.", "type": "string"},
            "metadata": {
                "description": "The list's version, and how to go on with it.",
                "allOf": [{"$ref": format!("{DEFINITIONS}{}.ListMeta", packages::META)}],
            },
        },
        KIND: [kind_value(&gvk.group, &gvk.version, &list_kind)],
    });
    (list_name(info), definition)
}

/// The name of the definition of a kind's lists.
pub(super) fn list_name(info: &KindInfo) -> String {
    format!("{}List", name(info))
}

/// A schema in the words of v2, which knows neither null nor alternatives:
/// where such is allowed, nothing is said, so that old clients let it pass.
pub(super) fn for_v2(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else {
        return schema.clone();
    };
    let flag = |name: &str| fields.get(name) == Some(&Value::Bool(true));
    let open = flag("nullable")
        || flag("x-kubernetes-int-or-string")
        || flag("x-kubernetes-preserve-unknown-fields");
    let mut out = Map::new();
    for (name, value) in fields {
        match name.as_str() {
            "oneOf" | "anyOf" | "not" | "nullable" => {}
            "type" | "items" | "properties" | "additionalProperties" | "format" | "required"
                if open && !(name == "type" && flag("x-kubernetes-preserve-unknown-fields")) => {}
            "properties" => {
                let inner = value.as_object().into_iter().flatten();
                let inner: Map<_, _> = inner.map(|(k, v)| (k.clone(), for_v2(v))).collect();
                out.insert(name.clone(), inner.into());
            }
            "items" | "additionalProperties" => {
                out.insert(name.clone(), for_v2(value));
            }
            // A reference beside a description; plain checks are no types.
            "allOf" if value[0].get("$ref").is_none() => {}
            _ => {
                out.insert(name.clone(), value.clone());
            }
        }
    }
    out.into()
}
