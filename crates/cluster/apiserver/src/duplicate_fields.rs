//! Duplicate fields in a request body: the last value counts. `fieldValidation` decides whether
//! they cause a warning, are rejected, or are ignored.

use bytes::Bytes;
use longshore_engine::{FieldValidation, WriteOptions};
use longshore_model::{KindInfo, StatusReason};
use longshore_schema::{strict_mistakes, unknown_fields};
use serde_json::Value;

use crate::status_error::{StatusError, invalid};

/// The duplicate fields of a body, with the messages for its format.
#[derive(Debug, Default)]
pub(crate) struct DuplicateFields {
    messages: Vec<String>,
    /// True if the messages are in the form for YAML.
    is_yaml: bool,
    /// The text of a JSON object with duplicate fields.
    json: Option<Bytes>,
}

impl DuplicateFields {
    /// Duplicate fields that the JSON parser found.
    pub(crate) fn in_json(messages: Vec<String>) -> Self {
        Self {
            messages,
            is_yaml: false,
            json: None,
        }
    }

    /// Duplicate fields of an object in JSON, with its text.
    pub(crate) fn in_object_text(messages: Vec<String>, text: &Bytes) -> Self {
        let json = (!messages.is_empty()).then(|| text.clone());
        Self {
            json,
            ..Self::in_json(messages)
        }
    }

    /// Duplicate fields that the YAML parser found. A server-side apply patch
    /// counts as YAML, even if it is JSON.
    pub(crate) fn in_yaml(messages: Vec<String>) -> Self {
        Self {
            messages,
            is_yaml: true,
            json: None,
        }
    }

    /// Joins the messages. YAML messages have a line each.
    fn text(&self) -> String {
        if self.is_yaml {
            format!("yaml: unmarshal errors:\n  {}", self.messages.join("\n  "))
        } else {
            self.messages.join(", ")
        }
    }

    /// Returns true if the duplicate fields are rejected. Clears them if they are to be ignored.
    fn is_refused(&mut self, options: &WriteOptions) -> bool {
        match options.field_validation {
            FieldValidation::Ignore => {
                self.messages.clear();
                false
            }
            FieldValidation::Warn => false,
            FieldValidation::Strict => !self.messages.is_empty(),
        }
    }

    /// Returns the warnings about an object; 400 under `Strict`.
    pub(crate) fn in_object(
        mut self,
        kind: &KindInfo,
        options: &WriteOptions,
        object: &Value,
    ) -> Result<Vec<String>, StatusError> {
        if !self.is_refused(options) {
            return Ok(self.messages);
        }
        // Report duplicate and unknown fields together.
        let mistakes = match &self.json {
            Some(json) => strict_mistakes(&kind.gvk, json),
            None => {
                let mut mistakes = vec![self.text()];
                mistakes.extend(unknown_fields(&kind.gvk, object));
                mistakes
            }
        };
        let name = &kind.gvk.kind;
        Err(StatusError::bad_request(format!(
            "{name} in version {:?} cannot be handled as a {name}: strict decoding error: {}",
            kind.gvk.version,
            mistakes.join(", ")
        )))
    }

    /// Returns the warnings about a patch with this `body`. Under `Strict`,
    /// returns 422, or 400 for server-side apply.
    pub(crate) fn in_patch(
        mut self,
        body: &[u8],
        options: &WriteOptions,
    ) -> Result<Vec<String>, StatusError> {
        if !self.is_refused(options) {
            return Ok(self.messages);
        }
        let mistakes = self.text();
        if self.is_yaml {
            return Err(StatusError::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: {mistakes}"
            )));
        }
        let text = String::from_utf8_lossy(body);
        let cause = invalid("patch", text, &format!("strict decoding error: {mistakes}"));
        let mut error = StatusError::new(
            StatusReason::Invalid,
            format!(" \"\" is invalid: patch: {}", cause.message),
        );
        error.set_details(longshore_model::StatusDetails {
            causes: vec![cause],
            ..longshore_model::StatusDetails::default()
        });
        Err(error)
    }
}
