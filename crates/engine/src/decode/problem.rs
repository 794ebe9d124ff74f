//! Why an object cannot be read: the error that the client gets.

use longshore_model::PatchKind;
use serde_json::Value;

use crate::{Error, Subject, cause::Cause, json};

/// Why an object cannot be read.
#[derive(Debug, PartialEq)]
pub(crate) enum Problem {
    /// It is of another type.
    Unreadable(String),
    /// A value in it is of another type; with what is said of it in a strategic
    /// patch.
    WrongType { text: String, restored: String },
    /// It has fields that its kind does not have, and that is asked for.
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
    /// As a problem of a patch, which is 422 and about no object.
    pub(crate) fn of_patch(self, kind: PatchKind, patch: &Value) -> Error {
        let is_strategic = kind == PatchKind::Strategic;
        let problem = match self {
            Self::WrongType { restored, .. } if is_strategic => restored,
            Self::Unreadable(text) | Self::WrongType { text, .. } => text,
            // Without the words that say which kind it is.
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
