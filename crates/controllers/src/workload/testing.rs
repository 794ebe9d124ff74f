//! Pods of workloads for the unit tests.
#![allow(clippy::unwrap_used)]

use jiff::Timestamp;
use longshore_client::LabelSelector;

use super::{
    kind::Meta,
    pod::{Phase, PodFacts},
};
use crate::{key::Key, owned::Owner};

/// Returns the current time of the tests.
pub(crate) fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

/// The identity of the workload `web`.
pub(crate) fn meta() -> Meta {
    Meta {
        key: Key::new("a", "web"),
        uid: "s1".into(),
        version: "1".into(),
        generation: 1,
        deleting: false,
        annotations: [].into(),
        selector: LabelSelector::exactly([("app", "web")]).unwrap(),
        match_labels: [("app".into(), "web".into())].into(),
    }
}

/// A pending pod of the workload. Its UID is its name.
pub(crate) fn pod(name: &str) -> PodFacts {
    PodFacts {
        key: Key::new("a", name),
        uid: name.into(),
        version: Some(1),
        labels: [("app".into(), "web".into())].into(),
        owner: Some(Owner {
            name: "web".into(),
            uid: "s1".into(),
        }),
        phase: Phase::Pending,
        deleting: false,
        node: String::new(),
        pinned: None,
        ready: None,
        created: Some(now()),
        claims: [].into(),
    }
}
