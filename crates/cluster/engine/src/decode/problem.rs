//! The errors of decoding an object.

use longshore_builtin::{cause::Cause, json};
use longshore_model::PatchKind;
use serde_json::Value;

use crate::{Error, Subject};

/// The reason why an object cannot be decoded.
#[derive(Debug, PartialEq)]
pub(crate) enum Problem {
    /// The object has an unexpected type.
    Unreadable(String),
    /// A value has the wrong type. `restored` is the message for strategic
    /// merge patches.
    WrongType { text: String, restored: String },
    /// Strict field validation found unknown fields.
    Strict(String),
}

impl Problem {
    fn text(self) -> String {
        match self {
            Self::Unreadable(text) | Self::WrongType { text, .. } | Self::Strict(text) => text,
        }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::BadRequest(problem.text())
    }
}

impl Problem {
    /// Converts the problem to the error of a patch, which is a 422 without an object.
    pub(crate) fn of_patch(self, kind: PatchKind, patch: &Value) -> Error {
        let is_strategic = kind == PatchKind::Strategic;
        let problem = match self {
            Self::WrongType { restored, .. } if is_strategic => restored,
            Self::Unreadable(text) | Self::WrongType { text, .. } => text,
            // Drop the prefix, which names the kind.
            Self::Strict(text) => match text.find("strict decoding error") {
                Some(start) => text[start..].to_owned(),
                None => text,
            },
        };
        let shown = if is_strategic {
            json::as_go_shows(patch)
        } else {
            patch.to_string()
        };
        let message = format!("Invalid value: {shown:?}: {problem}");
        let cause = Cause::plain("patch", "FieldValueInvalid", message);
        Error::Invalid {
            subject: Subject::default(),
            causes: vec![cause],
        }
    }
}
