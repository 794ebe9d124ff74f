//! The values of selectable fields.

mod decode;

use serde_json::Value;

use crate::{KindRules, json::Object};

impl KindRules {
    /// The values of the selectable fields, each terminated by a NUL.
    #[must_use]
    pub fn extract(&self, object: &Object) -> Box<str> {
        let mut text = String::new();
        for path in self.fields {
            text.push_str(&field(object, path).replace('\0', ""));
            text.push('\0');
        }
        text.into_boxed_str()
    }
}

/// The value of a selectable field as text; empty if it is absent and has no
/// default.
#[must_use]
pub fn field(object: &Object, path: &str) -> String {
    let at = |path: &str| {
        let mut parts = path.split('.');
        let first = object.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    };
    let text = |value: Option<&Value>| match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    match path {
        "spec.hostNetwork" | "spec.unschedulable" => at(path)
            .and_then(Value::as_bool)
            .unwrap_or_default()
            .to_string(),
        "status.podIPs" => text(at("status.podIPs").and_then(|ips| ips.get(0)?.get("ip"))),
        "status.successful" => at("status.succeeded")
            .and_then(Value::as_i64)
            .unwrap_or_default()
            .to_string(),
        "status.replicas" => at(path)
            .and_then(Value::as_i64)
            .unwrap_or_default()
            .to_string(),
        "source" => match text(at("source.component")) {
            component if component.is_empty() => text(at("reportingComponent")),
            component => component,
        },
        _ => text(at(path)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn computed_fields_have_their_defaults() {
        let empty = Object::new();
        assert_eq!(field(&empty, "spec.hostNetwork"), "false");
        assert_eq!(field(&empty, "status.successful"), "0");
        let event = serde_json::json!({"reportingComponent": "me"});
        assert_eq!(field(event.as_object().unwrap(), "source"), "me");
    }
}
