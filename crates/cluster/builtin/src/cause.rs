//! Builds `StatusCause`s with the messages of the Kubernetes API server.

use longshore_model::{CauseList, StatusCause};
use serde_json::Value;

use crate::json;

/// Constructors of causes.
#[derive(Debug)]
pub struct Cause;

impl Cause {
    /// A cause with a reason and a message.
    pub fn plain(field: &str, reason: &str, message: String) -> StatusCause {
        StatusCause {
            reason: reason.to_owned(),
            message,
            field: field.to_owned(),
        }
    }

    /// A required field is missing.
    pub fn required(field: &str, detail: &str) -> StatusCause {
        let message = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        Self::plain(field, "FieldValueRequired", message)
    }

    /// A value is invalid.
    pub fn invalid(field: &str, value: impl Into<Value>, detail: &str) -> StatusCause {
        let message = format!("Invalid value: {}: {detail}", value.into());
        Self::plain(field, "FieldValueInvalid", message)
    }

    /// A value is not in the list of supported values.
    pub fn not_supported(field: &str, value: impl Into<Value>, supported: &[&str]) -> StatusCause {
        let supported: Vec<String> = supported.iter().map(|word| format!("{word:?}")).collect();
        let message = format!(
            "Unsupported value: {}: supported values: {}",
            value.into(),
            supported.join(", ")
        );
        Self::plain(field, "FieldValueNotSupported", message)
    }

    /// A value occurs more than once.
    pub fn duplicate(field: &str, value: impl Into<Value>) -> StatusCause {
        let message = format!("Duplicate value: {}", value.into());
        Self::plain(field, "FieldValueDuplicate", message)
    }

    /// A field may not be set, or may not be changed.
    pub fn forbidden(field: &str, detail: &str) -> StatusCause {
        let message = match detail {
            "" => "Forbidden".to_owned(),
            detail => format!("Forbidden: {detail}"),
        };
        Self::plain(field, "FieldValueForbidden", message)
    }

    /// A value exceeds its length limit.
    pub fn too_long(field: &str, limit: usize) -> StatusCause {
        let message = format!("Too long: may not be more than {limit} bytes");
        Self::plain(field, "FieldValueTooLong", message)
    }

    /// A field is immutable.
    pub fn immutable(field: &str, value: Option<&Value>) -> StatusCause {
        let value = value.cloned().unwrap_or_default();
        Self::invalid(field, value, "field is immutable")
    }
}

/// Reports a negative number.
pub fn not_negative(object: &json::Object, field: &str, path: &str, causes: &mut CauseList) {
    if let Some(number) = json::number(object, field).filter(|number| *number < 0) {
        causes.push(Cause::invalid(
            path,
            number,
            "must be greater than or equal to 0",
        ));
    }
}

/// Reports a value that is not in `words`.
pub fn one_of(
    object: &json::Object,
    field: &str,
    path: &str,
    words: &[&str],
    causes: &mut CauseList,
) {
    let word = json::text(object, field);
    if !words.contains(&word) {
        causes.push(Cause::not_supported(path, word, words));
    }
}
