//! Conditions: what is true of an object, and since when.

use jiff::Timestamp;
use serde::Deserialize;

use crate::{cluster::Connection, error::Result, item::Item, kind::Object};

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

/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use longshore_client::Patch;
/// # use serde_json::json;
/// # cluster.nodes().create(&json!({"metadata": {"name": "n1"}})).await?;
/// # let status = json!({"status": {"conditions": [
/// #     {"type": "Ready", "status": "True", "reason": "KubeletReady"},
/// #     {"type": "DiskPressure", "status": "False"},
/// # ]}});
/// # cluster.nodes().patch_status("n1", &Patch::merge(status)).await?;
/// let node = cluster.nodes().fetch("n1").await?;
/// let ready = node.condition("Ready")?.ok_or("nothing is known")?;
/// assert!(ready.holds());
/// assert_eq!(ready.reason.as_deref(), Some("KubeletReady"));
///
/// // In short; what is not known does not hold.
/// assert!(node.holds("Ready")? && !node.holds("DiskPressure")?);
/// assert!(node.condition("MemoryPressure")?.is_none());
/// for condition in node.conditions()? {
///     println!("{}: {}", condition.kind, condition.status);
/// }
/// # Ok(()) });
/// ```
impl<K: Object, C: Connection> Item<K, C> {
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
