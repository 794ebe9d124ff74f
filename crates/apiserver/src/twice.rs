//! Fields that a body names twice: the last one counts. Told as a warning,
//! refused, or passed over, as `fieldValidation` has it.

use bytes::Bytes;
use longshore_engine::{FieldValidation, WriteOptions};
use longshore_model::{KindInfo, StatusReason};
use longshore_schema::{strict_mistakes, unknown_fields};
use serde_json::Value;

use crate::fault::{Fault, invalid};

/// The fields that a body names twice, in the words for its form.
#[derive(Debug, Default)]
pub(crate) struct Twice {
    told: Vec<String>,
    /// Whether the words are those for YAML.
    is_yaml: bool,
    /// The text of an object in JSON that has such fields.
    json: Option<Bytes>,
}

impl Twice {
    /// Those that were found when JSON was parsed.
    pub(crate) fn in_json(told: Vec<String>) -> Self {
        Self {
            told,
            is_yaml: false,
            json: None,
        }
    }

    /// Those that were found in the text of an object in JSON.
    pub(crate) fn in_object_text(told: Vec<String>, text: &Bytes) -> Self {
        let json = (!told.is_empty()).then(|| text.clone());
        Self {
            json,
            ..Self::in_json(told)
        }
    }

    /// Those that were found when YAML was read. A patch of server-side apply
    /// is YAML, whatever it looks like.
    pub(crate) fn in_yaml(told: Vec<String>) -> Self {
        Self {
            told,
            is_yaml: true,
            json: None,
        }
    }

    /// As one text; those of YAML have a line each.
    fn text(&self) -> String {
        if self.is_yaml {
            format!("yaml: unmarshal errors:\n  {}", self.told.join("\n  "))
        } else {
            self.told.join(", ")
        }
    }

    /// Whether they are refused; nothing is left of them when they are passed
    /// over.
    fn is_refused(&mut self, options: &WriteOptions) -> bool {
        match options.field_validation {
            FieldValidation::Ignore => {
                self.told.clear();
                false
            }
            FieldValidation::Warn => false,
            FieldValidation::Strict => !self.told.is_empty(),
        }
    }

    /// The warnings about an object; 400 under `Strict`.
    pub(crate) fn in_object(
        mut self,
        kind: &KindInfo,
        options: &WriteOptions,
        object: &Value,
    ) -> Result<Vec<String>, Fault> {
        if !self.is_refused(options) {
            return Ok(self.told);
        }
        // Both sorts of mistakes are told at once.
        let mistakes = match &self.json {
            Some(json) => strict_mistakes(&kind.gvk, json),
            None => {
                let mut mistakes = vec![self.text()];
                mistakes.extend(unknown_fields(&kind.gvk, object));
                mistakes
            }
        };
        let name = &kind.gvk.kind;
        Err(Fault::bad_request(format!(
            "{name} in version {:?} cannot be handled as a {name}: strict decoding error: {}",
            kind.gvk.version,
            mistakes.join(", ")
        )))
    }

    /// The warnings about a patch with this `body`; under `Strict` 422, and 400
    /// for server-side apply.
    pub(crate) fn in_patch(
        mut self,
        body: &[u8],
        options: &WriteOptions,
    ) -> Result<Vec<String>, Fault> {
        if !self.is_refused(options) {
            return Ok(self.told);
        }
        let mistakes = self.text();
        if self.is_yaml {
            return Err(Fault::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: {mistakes}"
            )));
        }
        let text = String::from_utf8_lossy(body);
        let cause = invalid("patch", text, &format!("strict decoding error: {mistakes}"));
        let mut fault = Fault::new(
            StatusReason::Invalid,
            format!(" \"\" is invalid: patch: {}", cause.message),
        );
        fault.set_details(longshore_model::StatusDetails {
            causes: vec![cause],
            ..longshore_model::StatusDetails::default()
        });
        Err(fault)
    }
}
