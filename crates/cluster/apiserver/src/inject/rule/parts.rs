//! The parts of a rule: match, effect, and validation errors.

use serde::{Deserialize, Serialize};

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Selects requests. A request must match every field that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Match {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`; empty matches all. For non-resource paths, the
    /// method.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verbs: Vec<String>,
    /// The API group; `""` is the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// `pods`, `pods/status`, `pods/*`, `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object's name in the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Prefix of the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Prefix of the user agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
}

/// The effect on a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Effect {
    /// Respond with an error that has the `Status` Kubernetes would return.
    #[serde(rename_all = "camelCase")]
    Answer {
        /// The HTTP status code, 400 to 599.
        code: u16,
        /// The reason, for codes with several reasons, such as `AlreadyExists`
        /// for 409.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Replaces the default message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The `Retry-After` header and `details.retryAfterSeconds`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_seconds: Option<u32>,
    },
    /// Delay the request; then other rules apply, or it is handled.
    Delay {
        /// At most an hour.
        milliseconds: u64,
    },
    /// Close the connection without a response.
    Drop,
    /// Truncate the response to its first half, as if it were complete.
    Garble,
    /// End the request's watch; other requests are not affected.
    #[serde(rename_all = "camelCase")]
    Watch {
        /// The way in which the watch ends.
        end: WatchEnd,
        /// The watch ends after this many further events.
        #[serde(default)]
        after_events: u64,
        /// The watch ends no earlier than this.
        #[serde(default)]
        after_milliseconds: u64,
    },
}

/// The way in which a watch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum WatchEnd {
    /// The connection stays open, but no more bytes are sent.
    Stall,
    /// The watch ends normally, as after its timeout.
    Close,
    /// The connection breaks.
    Break,
    /// An ERROR event with `410 Expired` is sent, then the watch ends.
    Expire,
    /// Half of an event is sent, then the watch ends.
    Garble,
}

/// The reason why a rule is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// A field has an invalid value.
    #[error("{field}: {why}")]
    Invalid {
        /// The JSON name of the field.
        field: &'static str,
        /// The requirement on the value.
        why: &'static str,
    },
    /// The maximum number of rules is reached.
    #[error("there are {} faults already: remove some", crate::inject::MOST_FAULTS)]
    TooMany,
}
