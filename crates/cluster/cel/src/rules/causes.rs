//! Errors with the messages of Kubernetes.

use longshore_model::StatusCause;
use serde_json::Value as Json;

fn cause(field: &str, reason: &str, message: String) -> StatusCause {
    // Kubernetes prints an empty path as nil.
    let field = if field.is_empty() { "<nil>" } else { field };
    StatusCause {
        reason: reason.to_owned(),
        message,
        field: field.to_owned(),
    }
}

pub(super) fn required(field: &str, detail: &str) -> StatusCause {
    cause(field, "FieldValueRequired", with("Required value", detail))
}

pub(super) fn forbidden(field: &str, detail: &str) -> StatusCause {
    cause(field, "FieldValueForbidden", with("Forbidden", detail))
}

/// An invalid value; objects and lists are not shown.
pub(super) fn invalid(field: &str, value: Option<&Json>, detail: &str) -> StatusCause {
    cause(
        field,
        "FieldValueInvalid",
        with(&shown("Invalid value", value), detail),
    )
}

/// An invalid rule, which Kubernetes shows with the names of its Go fields.
pub(super) fn invalid_rule(field: &str, rule: &Json, detail: &str) -> StatusCause {
    let part = |name: &str, default: &str| match &rule[name] {
        Json::Null => default.to_owned(),
        value => go_json(value),
    };
    let message = format!(
        r#"Invalid value: {{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}: {detail}"#,
        part("rule", "\"\""),
        part("message", "\"\""),
        part("messageExpression", "\"\""),
        part("reason", "null"),
        part("fieldPath", "\"\""),
        part("optionalOldSelf", "null"),
    );
    cause(field, "FieldValueInvalid", message)
}

pub(super) fn duplicate(field: &str, value: Option<&Json>) -> StatusCause {
    cause(
        field,
        "FieldValueDuplicate",
        shown("Duplicate value", value),
    )
}

pub(super) fn not_supported(field: &str, value: &str, words: &[&str]) -> StatusCause {
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    let message = format!(
        "Unsupported value: {value:?}: supported values: {}",
        words.join(", ")
    );
    cause(field, "FieldValueNotSupported", message)
}

fn with(text: &str, detail: &str) -> String {
    match detail.is_empty() {
        true => text.to_owned(),
        false => format!("{text}: {detail}"),
    }
}

fn shown(text: &str, value: Option<&Json>) -> String {
    match value {
        None => text.to_owned(),
        Some(Json::String(value)) => format!("{text}: {value:?}"),
        Some(value) => format!("{text}: {}", go_json(value)),
    }
}

/// JSON as Go writes it: with `<`, `>` and `&` escaped.
fn go_json(value: &Json) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}
