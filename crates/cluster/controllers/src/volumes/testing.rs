//! Facts for tests.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::facts::{ClaimFacts, ClassFacts, VolumeFacts};

fn merged(mut base: Value, more: Value) -> Value {
    base.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    base
}

/// The claim `default/c` with the UID `c1`, whose spec has these fields.
pub(crate) fn claim(spec: Value) -> ClaimFacts {
    let spec = merged(
        json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "",
               "resources": {"requests": {"storage": "1Gi"}}}),
        spec,
    );
    let claim = json!({
        "metadata": {"name": "c", "namespace": "default", "uid": "c1", "resourceVersion": "1"},
        "spec": spec, "status": {"phase": "Pending"},
    });
    ClaimFacts::read(serde_json::from_value(claim).unwrap()).unwrap()
}

/// An available volume whose spec has these fields.
pub(crate) fn volume(name: &str, spec: Value) -> VolumeFacts {
    let spec = merged(
        json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
               "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/v"}}),
        spec,
    );
    let volume = json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
        "spec": spec, "status": {"phase": "Available"},
    });
    VolumeFacts::read(serde_json::from_value(volume).unwrap())
}

/// A class of the provisioner `p`.
pub(crate) fn class(name: &str, more: Value) -> ClassFacts {
    let class = merged(
        json!({"metadata": {"name": name}, "provisioner": "p"}),
        more,
    );
    ClassFacts::read(serde_json::from_value(class).unwrap())
}
