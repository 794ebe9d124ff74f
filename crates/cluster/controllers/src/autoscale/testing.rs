//! Facts for tests.
#![allow(clippy::unwrap_used)]

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{autoscaler::Autoscaler, pod::PodFacts, usage::Measured};
use crate::key::Key;

/// A second of the tests' time.
pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// A usage that was measured at the second 990.
pub(super) fn measured(value: i64) -> Measured {
    Measured {
        at: at(990),
        window: SignedDuration::from_secs(1),
        value,
    }
}

/// A pod that runs and is ready since the beginning, with a container that requests a core
/// and a kibibyte.
pub(super) fn pod(name: &str) -> PodFacts {
    pod_requesting(name, "1")
}

/// Like [`pod`], with a request of CPU.
pub(super) fn pod_requesting(name: &str, cpu: &str) -> PodFacts {
    let pod = json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "resources": {
            "requests": {"cpu": cpu, "memory": "1Ki"}}}]},
        "status": {"phase": "Running", "startTime": at(0).to_string(), "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": at(0).to_string()}]},
    });
    PodFacts::read(serde_json::from_value(pod).unwrap())
}

/// An autoscaler of a Deployment `web`.
pub(super) fn autoscaler(spec: Value) -> Autoscaler {
    let mut whole = json!({
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1, "maxReplicas": 10,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {
            "type": "Utilization", "averageUtilization": 50}}}],
    });
    whole
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    let object = serde_json::from_value(json!({"metadata": {}, "spec": whole})).unwrap();
    Autoscaler::read(Key::new("default", "web"), "u".into(), 3, object)
}
