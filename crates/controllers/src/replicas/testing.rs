//! Pods and sets for the unit tests.
#![allow(clippy::unwrap_used)]

use jiff::Timestamp;
use longshore_client::LabelSelector;
use serde_json::json;

use super::{
    facts::{Phase, PodFacts},
    set::Set,
    status::Status,
};
use crate::{key::Key, owned::Owner};

/// Returns the current time of the tests.
pub(super) fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

/// The set `web` with the given number of replicas.
pub(super) fn set(replicas: usize) -> Set {
    Set {
        key: Key::new("a", "web"),
        uid: "s1".into(),
        version: "1".into(),
        generation: 1,
        deleting: false,
        owner: None,
        replicas,
        min_ready_seconds: 0,
        selector: LabelSelector::exactly([("app", "web")]).unwrap(),
        template: json!({}),
        template_labels: [("app".into(), "web".into()), ("v".into(), "1".into())].into(),
        status: Status::default(),
    }
}

/// A running and ready pod of the set. Its UID is its name.
pub(super) fn pod(name: &str) -> PodFacts {
    PodFacts {
        key: Key::new("a", name),
        uid: name.into(),
        version: Some(1),
        labels: [("app".into(), "web".into())].into(),
        owner: Some(Owner {
            name: "web".into(),
            uid: "s1".into(),
        }),
        phase: Phase::Running,
        deleting: false,
        node: "n".into(),
        ready: Some(Some(now())),
        restarts: (0, 0),
        cost: 0,
        created: Some(now()),
    }
}
