//! Conditions of objects.

use jiff::Timestamp;
use serde::Deserialize;

use crate::{cluster::Connection, error::Result, item::Item, kind::Object};

/// A condition of an object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The type, for example `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason in CamelCase.
    #[serde(default)]
    pub reason: Option<String>,
    /// The human-readable message.
    #[serde(default)]
    pub message: Option<String>,
    /// The time of the last change of the status.
    #[serde(default)]
    pub last_transition_time: Option<Timestamp>,
}

impl Condition {
    /// Returns true if the status is `True`.
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
/// // A shortcut; a missing condition is not true.
/// assert!(node.holds("Ready")? && !node.holds("DiskPressure")?);
/// assert!(node.condition("MemoryPressure")?.is_none());
/// for condition in node.conditions()? {
///     println!("{}: {}", condition.kind, condition.status);
/// }
/// # Ok(()) });
/// ```
impl<K: Object, C: Connection> Item<K, C> {
    /// Returns all conditions.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) if the object has no conditions yet,
    /// [`Error::Decode`](crate::Error::Decode) if they are malformed.
    pub fn conditions(&self) -> Result<Vec<Condition>> {
        self.status_field(&["conditions"])
    }

    /// Returns the condition of a type, for example `Ready`, or `None` if the object does
    /// not have it.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) if the conditions are malformed.
    pub fn condition(&self, kind: &str) -> Result<Option<Condition>> {
        let all: Vec<Condition> = self.field(&["status", "conditions"])?.unwrap_or_default();
        Ok(all.into_iter().find(|condition| condition.kind == kind))
    }

    /// Returns true if a condition is true, false if it is missing.
    ///
    /// # Errors
    /// The same as [`Item::condition`].
    pub fn holds(&self, kind: &str) -> Result<bool> {
        Ok(self.condition(kind)?.is_some_and(|found| found.holds()))
    }
}
