//! Events.

use jiff::Timestamp;
use serde::Deserialize;

use super::open_enum;
use crate::{cluster::Connection, error::Result, item::Item, kinds::Event};

open_enum! {
    /// The type of an event.
    EventType {
        /// Information.
        Normal = "Normal",
        /// A problem.
        Warning = "Warning",
    }
}

/// The object that an event refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// `group/version`, or `version` for the core group.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid; empty if it is absent.
    pub uid: String,
    /// The part of the object, for example `spec.containers{main}`.
    pub field_path: String,
}

/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use serde_json::json;
/// use longshore_client::typed::EventType;
///
/// let events = cluster.events().in_namespace("default")?;
/// # events.create(&json!({
/// #     "metadata": {"name": "web.1"}, "type": "Warning", "reason": "BackOff",
/// #     "message": "Back-off restarting failed container", "count": 4,
/// #     "source": {"component": "kubelet"}, "lastTimestamp": "2026-01-05T10:00:00Z",
/// #     "involvedObject": {
/// #         "apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "web",
/// #     },
/// # })).await?;
/// let event = &events.list().await?.items[0];
/// let about = event.regarding()?;
/// assert_eq!((about.kind.as_str(), about.name.as_str()), ("Pod", "web"));
/// assert_eq!(event.event_type()?, EventType::Warning);
/// assert_eq!((event.reason()?.as_str(), event.count()?), ("BackOff", 4));
/// assert_eq!(event.message()?, "Back-off restarting failed container");
/// assert_eq!(event.source()?, "kubelet");
/// assert_eq!(event.last_seen()?, Some("2026-01-05T10:00:00Z".parse()?));
/// # Ok(()) });
/// ```
impl<C: Connection> Item<Event, C> {
    /// The human-readable message; may be empty.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) if it is not a string.
    pub fn message(&self) -> Result<String> {
        Ok(self.field(&["message"])?.unwrap_or_default())
    }

    /// The reason in CamelCase, for example `FailedScheduling`.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) if it is not a string.
    pub fn reason(&self) -> Result<String> {
        Ok(self.field(&["reason"])?.unwrap_or_default())
    }

    /// The type; `Normal` if it is absent.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) if it is not a string.
    pub fn event_type(&self) -> Result<EventType> {
        Ok(self.field(&["type"])?.unwrap_or(EventType::Normal))
    }

    /// The object that the event refers to.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) if it is malformed.
    pub fn regarding(&self) -> Result<ObjectReference> {
        Ok(self.field(&["involvedObject"])?.unwrap_or_default())
    }

    /// The component that reported the event, for example `kubelet`; may be empty.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) if it is not a string.
    pub fn source(&self) -> Result<String> {
        let reporter: Option<String> = self.field(&["reportingComponent"])?;
        match reporter.filter(|name| !name.is_empty()) {
            Some(name) => Ok(name),
            None => Ok(self.field(&["source", "component"])?.unwrap_or_default()),
        }
    }

    /// Returns the number of occurrences of the event.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) if it is not a number.
    pub fn count(&self) -> Result<u64> {
        let series: Option<u64> = self.field(&["series", "count"])?;
        match series {
            Some(count) => Ok(count),
            None => Ok(self.field(&["count"])?.unwrap_or(1).max(1)),
        }
    }

    /// Returns the time of the last occurrence of the event; `None` if it has no time.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) if it is not a time.
    pub fn last_seen(&self) -> Result<Option<Timestamp>> {
        const TIMES: [&[&str]; 5] = [
            &["series", "lastObservedTime"],
            &["lastTimestamp"],
            &["eventTime"],
            &["firstTimestamp"],
            &["metadata", "creationTimestamp"],
        ];
        for path in TIMES {
            if let Some(time) = self.field(path)? {
                return Ok(Some(time));
            }
        }
        Ok(None)
    }
}
