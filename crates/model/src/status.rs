//! `Status`: what the API server answers instead of an object.

use serde::{Deserialize, Serialize};

/// The machine-readable reason of a failed request, as in `metav1.StatusReason`.
///
/// Open: a reason of a newer server is kept in [`StatusReason::Other`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum StatusReason {
    #[default]
    Unknown,
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    AlreadyExists,
    Conflict,
    Gone,
    Expired,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    Invalid,
    TooManyRequests,
    InternalError,
    ServiceUnavailable,
    Timeout,
    ServerTimeout,
    Other(String),
}

macro_rules! reasons {
    ($($variant:ident => $code:literal),* $(,)?) => {
        impl StatusReason {
            /// The reason's word; empty for [`StatusReason::Unknown`].
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    Self::Unknown => "",
                    Self::Other(text) => text,
                    $(Self::$variant => stringify!($variant),)*
                }
            }

            /// The HTTP code that goes with it.
            #[must_use]
            pub fn code(&self) -> u16 {
                match self {
                    Self::Unknown | Self::Other(_) => 500,
                    $(Self::$variant => $code,)*
                }
            }

            /// The reason a word names.
            #[must_use]
            pub fn from_word(word: &str) -> Self {
                match word {
                    "" => Self::Unknown,
                    $(stringify!($variant) => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }
    };
}

reasons! {
    BadRequest => 400, Unauthorized => 401, Forbidden => 403, NotFound => 404,
    MethodNotAllowed => 405, NotAcceptable => 406, AlreadyExists => 409, Conflict => 409,
    Gone => 410, Expired => 410, RequestEntityTooLarge => 413, UnsupportedMediaType => 415,
    Invalid => 422, TooManyRequests => 429, InternalError => 500, ServiceUnavailable => 503,
    Timeout => 504, ServerTimeout => 500,
}

impl Serialize for StatusReason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for StatusReason {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from_word(&String::deserialize(deserializer)?))
    }
}

/// A `v1` `Status`. [`Status::failure`] makes one for an error.
///
/// ```
/// use longshore_model::{Status, StatusReason};
/// let status = Status::failure(StatusReason::NotFound, "pods \"x\" not found");
/// assert_eq!(status.code, 404);
/// assert_eq!(serde_json::to_value(&status).unwrap()["reason"], "NotFound");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Always `Status`.
    #[serde(default)]
    pub kind: String,
    /// Always `v1`.
    #[serde(default)]
    pub api_version: String,
    /// List metadata: empty.
    #[serde(default)]
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// `Success` or `Failure`.
    #[serde(default)]
    pub status: String,
    /// What happened, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What happened, for programs.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub reason: StatusReason,
    /// About which object, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
    /// The HTTP code; 0 when absent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub code: u16,
}

fn is_unknown(reason: &StatusReason) -> bool {
    *reason == StatusReason::Unknown
}

fn is_zero(code: &u16) -> bool {
    *code == 0
}

/// What a [`Status`] is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The kind's group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource (errors) or kind (validation, deletes).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The single causes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// Seconds to wait before the next try; 0 when absent.
    #[serde(skip_serializing_if = "is_zero_seconds")]
    pub retry_after_seconds: u32,
}

fn is_zero_seconds(seconds: &u32) -> bool {
    *seconds == 0
}

/// One cause: a field and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// `FieldValueRequired`, `FieldValueInvalid`, …
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The field's path: `spec.containers[0].name`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl Status {
    /// A failure with the code of its reason.
    #[must_use]
    pub fn failure(reason: StatusReason, message: impl Into<String>) -> Self {
        Self {
            code: reason.code(),
            reason,
            message: message.into(),
            status: "Failure".into(),
            ..Self::success()
        }
    }

    /// A plain success.
    #[must_use]
    pub fn success() -> Self {
        Self {
            kind: "Status".into(),
            api_version: "v1".into(),
            metadata: serde_json::Map::new(),
            status: "Success".into(),
            message: String::new(),
            reason: StatusReason::Unknown,
            details: None,
            code: 0,
        }
    }
}
