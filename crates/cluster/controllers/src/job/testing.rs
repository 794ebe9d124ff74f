//! Pods and Jobs for the unit tests of the Job controller.
#![allow(clippy::unwrap_used)]

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};

use super::facts::{Owner, Phase, PodFacts};

/// Returns the current time of the tests.
pub(crate) fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

/// A pending, tracked pod of the Job `train`. Its UID is its name.
pub(crate) fn pod(name: &str) -> PodFacts {
    PodFacts {
        namespace: "a".into(),
        name: name.into(),
        uid: name.into(),
        version: Some(1),
        owner: Some(Owner {
            name: "train".into(),
            uid: "j1".into(),
        }),
        is_foreign: false,
        labels: Default::default(),
        phase: Phase::Unfinished { running: false },
        deleting: false,
        lost: false,
        tracked: true,
        ready: false,
        index: None,
        restarts: 0,
        index_failures: 0,
        index_ignored: 0,
        created: Some(now()),
        finished: None,
        exits: Vec::new(),
        conditions: Vec::new(),
    }
}

/// A running and ready pod.
pub(crate) fn running(name: &str) -> PodFacts {
    PodFacts {
        phase: Phase::Unfinished { running: true },
        ready: true,
        ..pod(name)
    }
}

/// A pod that succeeded now.
pub(crate) fn succeeded(name: &str) -> PodFacts {
    PodFacts {
        phase: Phase::Succeeded,
        finished: Some(now()),
        ..pod(name)
    }
}

/// A pod that failed now.
pub(crate) fn failed(name: &str) -> PodFacts {
    PodFacts {
        phase: Phase::Failed,
        finished: Some(now()),
        ..pod(name)
    }
}

/// The pod with a completion index.
pub(crate) fn at(index: u32, pod: PodFacts) -> PodFacts {
    PodFacts {
        index: Some(index),
        ..pod
    }
}

/// The Job `train` with the given spec and status. Unless the spec has a template,
/// its template has a container `main`.
pub(crate) fn job(mut spec: Value, status: Value) -> Job {
    let map = spec.as_object_mut().unwrap();
    map.entry("template").or_insert_with(
        || json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]}}),
    );
    serde_json::from_value(json!({
        "metadata": {"name": "train", "namespace": "a", "uid": "j1", "resourceVersion": "1"},
        "spec": spec,
        "status": status,
    }))
    .unwrap()
}
