//! The garbage collector.

use serde_json::{Value, json};

use crate::{
    objects::{list, number, template, text, workload},
    plane::Plane,
};

/// Creates a ConfigMap `owner` and a ConfigMap `owned` that it owns; returns their paths.
async fn create(plane: &Plane, finalizers: &Value) -> (String, String) {
    let maps = plane.path("v1", "configmaps");
    let owner = plane
        .create(&maps, &json!({"metadata": {"name": "owner"}}))
        .await;
    let reference = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
    }]);
    let owned = json!({"metadata": {
        "name": "owned", "ownerReferences": reference, "finalizers": finalizers,
    }});
    plane.create(&maps, &owned).await;
    (format!("{maps}/owner"), format!("{maps}/owned"))
}

fn policy(policy: &str) -> Value {
    json!({"propagationPolicy": policy})
}

#[tokio::test]
async fn background_deletion_deletes_dependents_afterwards() {
    let plane = Plane::start().await;
    let (owner, owned) = create(&plane, &json!([])).await;
    plane.delete_with(&owner, &policy("Background")).await.ok();
    assert_eq!(plane.get(&owner).await.code, 404);
    plane.until_gone(&owned).await;
}

#[tokio::test]
async fn foreground_deletion_deletes_dependents_first() {
    let plane = Plane::start().await;
    let (owner, owned) = create(&plane, &json!(["example.org/test"])).await;
    plane.delete_with(&owner, &policy("Foreground")).await.ok();
    plane
        .until(&owned, |owned| {
            !owned["metadata"]["deletionTimestamp"].is_null()
        })
        .await;
    let waiting = plane.get(&owner).await.ok();
    assert_eq!(
        waiting["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    plane
        .merge(&owned, &json!({"metadata": {"finalizers": null}}))
        .await;
    plane.until_gone(&owner).await;
    plane.until_gone(&owned).await;
}

#[tokio::test]
async fn orphans_lose_their_owner() {
    let plane = Plane::with_nodes(1).await;
    let sets = plane.path("apps/v1", "replicasets");
    let template = template(plane.namespace(), "web", "ready");
    plane.create(&sets, &workload("web", 2, &template)).await;
    let path = format!("{sets}/web");
    plane
        .until(&path, |set| number(set, "/status/readyReplicas") == 2)
        .await;
    plane.delete_with(&path, &policy("Orphan")).await.ok();
    plane.until_gone(&path).await;
    let pods = plane.list(&plane.path("v1", "pods")).await.0;
    assert_eq!(pods.len(), 2);
    for pod in &pods {
        assert!(list(pod, "/metadata/ownerReferences").is_empty(), "{pod}");
        assert!(pod["metadata"]["deletionTimestamp"].is_null());
        assert_eq!(text(pod, "/status/phase"), "Running");
    }
}

#[tokio::test]
async fn dependents_of_absent_owners_are_deleted() {
    let plane = Plane::start().await;
    let maps = plane.path("v1", "configmaps");
    let reference = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "absent",
        "uid": "00000000-0000-0000-0000-000000000001",
    }]);
    let owned = json!({"metadata": {"name": "owned", "ownerReferences": reference}});
    plane.create(&maps, &owned).await;
    plane.until_gone(&format!("{maps}/owned")).await;
}
