//! Fields that a body names twice: the last one counts. Told as a warning,
//! refused, or passed over, as `fieldValidation` has it.

use longshore_engine::{FieldValidation, WriteOptions};
use longshore_model::{KindInfo, PatchKind, StatusReason};
use longshore_schema::{duplicate_fields, unknown_fields};
use serde_json::Value;

use crate::{
    fault::{Fault, invalid},
    yaml,
};

/// The fields that a body names twice, in the words for its form.
#[derive(Debug, Default)]
pub(crate) struct Twice {
    told: Vec<String>,
    /// Whether the words are those for YAML.
    is_yaml: bool,
}

impl Twice {
    /// Looks for them in an object. Protobuf cannot name fields twice.
    pub(crate) fn find(media_type: &str, body: &[u8]) -> Self {
        match media_type {
            "application/json" | "" => Self::in_json(body),
            media_type if yaml::is_named(media_type) => Self::in_yaml(body),
            _ => Self::default(),
        }
    }

    /// Looks for them in a patch. That of server-side apply is YAML, whatever
    /// it looks like.
    pub(crate) fn find_in_patch(kind: PatchKind, body: &[u8]) -> Self {
        match kind {
            PatchKind::Apply => Self::in_yaml(body),
            _ => Self::in_json(body),
        }
    }

    fn in_json(body: &[u8]) -> Self {
        Self {
            told: duplicate_fields(body),
            is_yaml: false,
        }
    }

    fn in_yaml(body: &[u8]) -> Self {
        Self {
            told: yaml::duplicates(body),
            is_yaml: true,
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
        let mut mistakes = vec![self.text()];
        mistakes.extend(unknown_fields(&kind.gvk, object));
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
