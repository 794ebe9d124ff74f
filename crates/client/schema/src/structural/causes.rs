//! `StatusCause`s with the messages of Kubernetes' field errors.

use longshore_model::StatusCause;
use serde_json::Value;

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
    let message = if detail.is_empty() {
        "Required value".to_owned()
    } else {
        format!("Required value: {detail}")
    };
    cause(field, "FieldValueRequired", message)
}

fn format_value(value: &Value) -> String {
    match value {
        Value::Null => "\"null\"".to_owned(),
        value => value.to_string(),
    }
}

pub(super) fn invalid(field: &str, value: &Value, detail: &str) -> StatusCause {
    let message = format!("Invalid value: {}: {detail}", format_value(value));
    cause(field, "FieldValueInvalid", message)
}

/// A value of another type than declared.
pub(super) fn mistyped(field: &str, value: &Value, detail: &str) -> StatusCause {
    StatusCause {
        reason: "FieldValueTypeInvalid".to_owned(),
        ..invalid(field, value, detail)
    }
}

pub(super) fn not_supported(field: &str, value: &Value, supported: &[String]) -> StatusCause {
    let supported: Vec<_> = supported.iter().map(|word| format!("{word:?}")).collect();
    let message = format!(
        "Unsupported value: {}: supported values: {}",
        format_value(value),
        supported.join(", ")
    );
    cause(field, "FieldValueNotSupported", message)
}

pub(super) fn duplicate(field: &str, value: &Value) -> StatusCause {
    let message = format!("Duplicate value: {}", format_value(value));
    cause(field, "FieldValueDuplicate", message)
}

pub(super) fn forbidden(field: &str, detail: &str) -> StatusCause {
    cause(field, "FieldValueForbidden", format!("Forbidden: {detail}"))
}

pub(super) fn too_long(field: &str, limit: u64) -> StatusCause {
    let message = format!("Too long: may not be more than {limit} bytes");
    cause(field, "FieldValueTooLong", message)
}

pub(super) fn too_many(field: &str, actual: usize, limit: u64) -> StatusCause {
    let message = format!("Too many: {actual}: must have at most {limit} items");
    cause(field, "FieldValueTooMany", message)
}
