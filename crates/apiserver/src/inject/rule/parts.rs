//! What a rule says: which requests, what happens, and what may not be said.

use serde::{Deserialize, Serialize};

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Which requests a rule is about: those that fit everything that is said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Match {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`; none: all. For paths without objects the method.
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
    /// How the path begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How the user agent begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
}

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Effect {
    /// It is answered with an error, whose `Status` is worded as Kubernetes
    /// words it.
    #[serde(rename_all = "camelCase")]
    Answer {
        /// The HTTP code, 400 to 599.
        code: u16,
        /// The reason, where a code has several: `AlreadyExists` for 409.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// A message of one's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The `Retry-After` header and `details.retryAfterSeconds`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_seconds: Option<u32>,
    },
    /// It waits so long; then other rules apply, or it is handled.
    Delay {
        /// At most an hour.
        milliseconds: u64,
    },
    /// Its connection ends without an answer.
    Drop,
    /// The first half of its answer comes, as if that were all.
    Garble,
    /// Its watch ends badly; other requests do not feel this one.
    #[serde(rename_all = "camelCase")]
    Watch {
        /// How.
        end: WatchEnd,
        /// After so many more events.
        #[serde(default)]
        after_events: u64,
        /// And not before so long.
        #[serde(default)]
        after_milliseconds: u64,
    },
}

/// How a watch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum WatchEnd {
    /// No more bytes come, but the connection stays open.
    Stall,
    /// It ends cleanly, as after its timeout.
    Close,
    /// Its connection breaks.
    Break,
    /// An ERROR event with `410 Expired` comes, then the end.
    Expire,
    /// Half of an event comes, then the end.
    Garble,
}

/// Why a rule is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// A field has a value that makes no sense.
    #[error("{field}: {why}")]
    Invalid {
        /// The field, as in JSON.
        field: &'static str,
        /// What it must be.
        why: &'static str,
    },
    /// There are too many rules.
    #[error("there are {} faults already: remove some", crate::inject::MOST_FAULTS)]
    TooMany,
}
