//! Builds the ReplicaSet that a Deployment creates.

use serde_json::{Value, json};

use super::{facts::Deployment, plan::NewSet};

/// Returns the owner reference of the Deployment's ReplicaSets.
pub(super) fn reference(deployment: &Deployment) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "name": deployment.key.name, "uid": deployment.uid,
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// Returns the object to create.
pub(super) fn object(deployment: &Deployment, set: &NewSet) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": set.name,
            "labels": set.template["metadata"]["labels"],
            "annotations": set.annotations,
            "ownerReferences": [reference(deployment)],
        },
        "spec": {
            "replicas": set.replicas,
            "minReadySeconds": deployment.spec.min_ready_seconds,
            "selector": set.selector,
            "template": set.template,
        },
    })
}
