//! `Status`: the response of the API server when it does not return an object.

use serde::{Deserialize, Serialize};

/// The machine-readable reason of a failed request, as in
/// `metav1.StatusReason`.
///
/// [`StatusReason::Other`] holds reasons that this crate does not know.
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
            /// The name of the reason; empty for [`StatusReason::Unknown`].
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    Self::Unknown => "",
                    Self::Other(text) => text,
                    $(Self::$variant => stringify!($variant),)*
                }
            }

            /// The HTTP status code of the reason.
            #[must_use]
            pub fn code(&self) -> u16 {
                match self {
                    Self::Unknown | Self::Other(_) => 500,
                    $(Self::$variant => $code,)*
                }
            }

            /// Returns the reason with a name.
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

/// A `v1` `Status`. Use [`Status::failure`] to create one for an error.
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
    /// List metadata, always empty.
    #[serde(default)]
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// `Success` or `Failure`.
    #[serde(default)]
    pub status: String,
    /// A message for users.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The machine-readable reason.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub reason: StatusReason,
    /// The object and the causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
    /// The HTTP status code; 0 if absent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub code: u16,
}

fn is_unknown(reason: &StatusReason) -> bool {
    *reason == StatusReason::Unknown
}

fn is_zero(code: &u16) -> bool {
    *code == 0
}

/// Details of a [`Status`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The kind's group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource (for errors) or the kind (for validation errors and
    /// deletes).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The individual causes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// Seconds after which to retry; 0 if absent.
    #[serde(skip_serializing_if = "is_zero_seconds")]
    pub retry_after_seconds: u32,
}

fn is_zero_seconds(seconds: &u32) -> bool {
    *seconds == 0
}

/// A cause: a field and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// `FieldValueRequired`, `FieldValueInvalid`, …
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A message for users.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The path of the field: `spec.containers[0].name`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl Status {
    /// Creates a failure with the status code of its reason.
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

    /// Creates a success.
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
