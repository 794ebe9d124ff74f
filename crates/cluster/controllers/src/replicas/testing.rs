//! Pods and sets for the unit tests.
#![allow(clippy::unwrap_used)]

use longshore_client::LabelSelector;
use serde_json::json;

use super::{set::Set, status::Status};
pub(super) use crate::pod_facts::testing::now;
use crate::{
    key::Key,
    pod_facts::{Phase, PodFacts, testing},
};

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
        phase: Phase::Running,
        node: "n".into(),
        ready: Some(Some(now())),
        ..testing::pod(name)
    }
}
