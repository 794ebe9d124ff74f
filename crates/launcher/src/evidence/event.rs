//! Events, with which components of the cluster report about an object.

use jiff::Timestamp;
use serde::Deserialize;

use super::Meta;

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct EventEvidence {
    pub metadata: Meta,
    pub involved_object: Regarding,
    #[serde(rename = "type")]
    pub kind: String,
    pub reason: String,
    pub message: String,
    pub count: Option<u32>,
    pub series: Option<Series>,
    pub last_timestamp: Option<Timestamp>,
    pub event_time: Option<Timestamp>,
}

/// The object that an event refers to.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct Regarding {
    pub kind: String,
    pub name: String,
    pub uid: String,
}

/// An event that happened several times.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are Kubernetes' own")]
pub struct Series {
    pub count: u32,
    pub last_observed_time: Option<Timestamp>,
}

impl EventEvidence {
    /// The time of its last occurrence.
    #[must_use]
    pub fn last_seen(&self) -> Option<Timestamp> {
        let series = self
            .series
            .as_ref()
            .and_then(|series| series.last_observed_time);
        series
            .or(self.last_timestamp)
            .or(self.event_time)
            .or(self.metadata.creation_timestamp)
    }

    /// Whether it refers to this object. A recreated object of the same name has another uid.
    #[must_use]
    pub fn is_about(&self, kind: &str, meta: &Meta) -> bool {
        let about = &self.involved_object;
        about.kind == kind
            && about.name == meta.name
            && (about.uid.is_empty() || meta.uid.is_empty() || about.uid == meta.uid)
    }
}
