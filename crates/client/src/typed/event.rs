//! Events.

use jiff::Timestamp;
use serde::Deserialize;

use super::open_enum;
use crate::{cluster::Connection, error::Result, item::Item, kinds::Event};

open_enum! {
    /// How much an event matters.
    EventType {
        /// For information.
        Normal = "Normal",
        /// Something is not as it should be.
        Warning = "Warning",
    }
}

/// The object that an event is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// Its type's group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty for objects of the whole cluster.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid; empty when it is absent.
    pub uid: String,
    /// Which part of it, as `spec.containers{main}`.
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
    /// What happened, for people; empty when nothing is said.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when it is no text.
    pub fn message(&self) -> Result<String> {
        Ok(self.field(&["message"])?.unwrap_or_default())
    }

    /// What happened, in a word, as `FailedScheduling`.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when it is no text.
    pub fn reason(&self) -> Result<String> {
        Ok(self.field(&["reason"])?.unwrap_or_default())
    }

    /// How much it matters; `Normal` when nothing is said.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when it is no text.
    pub fn event_type(&self) -> Result<EventType> {
        Ok(self.field(&["type"])?.unwrap_or(EventType::Normal))
    }

    /// The object that it is about.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when it is malformed.
    pub fn regarding(&self) -> Result<ObjectReference> {
        Ok(self.field(&["involvedObject"])?.unwrap_or_default())
    }

    /// The component that reported it, as `kubelet`; empty when none is named.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when it is no text.
    pub fn source(&self) -> Result<String> {
        let reporter: Option<String> = self.field(&["reportingComponent"])?;
        match reporter.filter(|name| !name.is_empty()) {
            Some(name) => Ok(name),
            None => Ok(self.field(&["source", "component"])?.unwrap_or_default()),
        }
    }

    /// How often it has happened.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when it is no number.
    pub fn count(&self) -> Result<u64> {
        let series: Option<u64> = self.field(&["series", "count"])?;
        match series {
            Some(count) => Ok(count),
            None => Ok(self.field(&["count"])?.unwrap_or(1).max(1)),
        }
    }

    /// When it last happened; `None` without a time.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when it is no time.
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
