//! Objects within objects (`x-kubernetes-embedded-resource`). Their type and
//! metadata follow the same rules as those of the outer object.

use longshore_model::{CauseList, name};
use serde_json::Value;

use super::{Structural, causes};

impl Structural {
    /// Validates the type and metadata of embedded objects.
    #[must_use]
    pub fn check_embedded(&self, object: &Value) -> CauseList {
        let mut out = CauseList::new();
        walk(self, object, "", &mut out);
        out
    }
}

fn walk(schema: &Structural, value: &Value, path: &str, out: &mut CauseList) {
    match value {
        Value::Object(fields) => {
            if schema.embedded && !schema.root {
                meta(value, path, out);
            }
            for (name, value) in fields {
                if let Some(inner) = schema.at_key(name) {
                    let path = match (path, schema.properties.contains_key(name)) {
                        ("", true) => name.clone(),
                        (_, true) => format!("{path}.{name}"),
                        (_, false) => format!("{path}[{name}]"),
                    };
                    walk(inner, value, &path, out);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = schema.items.as_deref() {
                for (index, item) in items.iter().enumerate() {
                    walk(inner, item, &format!("{path}[{index}]"), out);
                }
            }
        }
        _ => {}
    }
}

fn meta(object: &Value, path: &str, out: &mut CauseList) {
    for field in ["apiVersion", "kind"] {
        match object.get(field) {
            Some(Value::String(text)) if !text.is_empty() => {}
            Some(
                value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)),
            ) => {
                let path = format!("{path}.{field}");
                out.push(causes::invalid(&path, value, "must be a string"));
            }
            _ => out.push(causes::required(
                &format!("{path}.{field}"),
                "must not be empty",
            )),
        }
    }
    match object.get("metadata") {
        None | Some(Value::Null) => {}
        Some(Value::Object(metadata)) => {
            if let Some(own) = metadata.get("name").and_then(Value::as_str)
                && !own.is_empty()
                && name::dns_subdomain("name", own).is_err()
            {
                let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
                out.push(causes::invalid(
                    &format!("{path}.metadata.name"),
                    &own.into(),
                    why,
                ));
            }
        }
        Some(other) => out.push(causes::invalid(
            &format!("{path}.metadata"),
            other,
            "must be an object",
        )),
    }
}
