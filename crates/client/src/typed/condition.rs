//! Conditions: what is true of an object, and since when.

use jiff::Timestamp;
use serde::Deserialize;

use crate::{error::Result, item::Item, kinds::Kind};

/// One condition of an object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about, as `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in a word.
    #[serde(default)]
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(default)]
    pub message: Option<String>,
    /// Since when.
    #[serde(default)]
    pub last_transition_time: Option<Timestamp>,
}

impl Condition {
    /// Whether it holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.status == "True"
    }
}

impl<K: Kind> Item<K> {
    /// All its conditions.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) when it has none yet,
    /// [`Error::Decode`](crate::Error::Decode) when they are malformed.
    pub fn conditions(&self) -> Result<Vec<Condition>> {
        self.status_field(&["conditions"])
    }

    /// One condition by its type, as `Ready`; `None` while nothing is known of
    /// it.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when they are malformed.
    pub fn condition(&self, kind: &str) -> Result<Option<Condition>> {
        let all: Vec<Condition> = self.field(&["status", "conditions"])?.unwrap_or_default();
        Ok(all.into_iter().find(|condition| condition.kind == kind))
    }

    /// Whether a condition holds; while nothing is known of it, it does not.
    ///
    /// # Errors
    /// As [`Item::condition`].
    pub fn holds(&self, kind: &str) -> Result<bool> {
        Ok(self.condition(kind)?.is_some_and(|found| found.holds()))
    }
}
