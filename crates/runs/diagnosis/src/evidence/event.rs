//! Events, with which components of the cluster report about an object.

use jiff::Timestamp;
use longshore_model::ObjectMeta;
use serde::Deserialize;

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EventEvidence {
    pub(crate) metadata: ObjectMeta,
    /// The object that it refers to.
    pub involved_object: Regarding,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) count: Option<u32>,
    pub(crate) series: Option<Series>,
    pub(crate) last_timestamp: Option<Timestamp>,
    pub(crate) event_time: Option<Timestamp>,
}

/// The object that an event refers to.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Regarding {
    pub(crate) kind: String,
    /// The object's name.
    pub name: String,
    pub(crate) uid: String,
}

impl Regarding {
    /// The object's uid.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.uid
    }
}

/// An event that happened several times.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Series {
    pub(crate) count: u32,
    pub(crate) last_observed_time: Option<Timestamp>,
}

impl EventEvidence {
    /// The time of the last occurrence.
    pub(crate) fn last_seen(&self) -> Option<Timestamp> {
        let series = self
            .series
            .as_ref()
            .and_then(|series| series.last_observed_time);
        series
            .or(self.last_timestamp)
            .or(self.event_time)
            .or(self.metadata.creation_timestamp)
    }

    /// Returns true if the event refers to this object. A recreated object of the same name has
    /// another uid.
    pub(crate) fn is_about(&self, kind: &str, meta: &ObjectMeta) -> bool {
        let about = &self.involved_object;
        about.kind == kind
            && about.name == meta.name
            && (about.uid.is_empty() || meta.uid.is_empty() || about.uid == meta.uid)
    }
}
