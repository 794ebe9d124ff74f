//! Deletion of namespaces.

use serde_json::json;

use crate::{objects::holds, plane::Plane};

#[tokio::test]
async fn a_namespace_is_deleted_after_its_contents() {
    let plane = Plane::start().await;
    let name = format!("{}-extra", plane.namespace());
    let path = format!("/api/v1/namespaces/{name}");
    plane
        .create("/api/v1/namespaces", &json!({"metadata": {"name": name}}))
        .await;
    let maps = format!("{path}/configmaps");
    let map = json!({"metadata": {"name": "kept", "finalizers": ["example.org/test"]}});
    plane.create(&maps, &map).await;
    plane
        .create(&maps, &json!({"metadata": {"name": "other"}}))
        .await;
    plane.delete(&path).await.ok();
    plane
        .until(&path, |namespace| {
            namespace["status"]["phase"] == "Terminating"
                && holds(namespace, "NamespaceFinalizersRemaining")
                && holds(namespace, "NamespaceContentRemaining")
        })
        .await;
    plane.until_gone(&format!("{maps}/other")).await;
    plane
        .post(&maps, &json!({"metadata": {"name": "late"}}))
        .await
        .refused(403, "Forbidden");
    plane
        .merge(
            &format!("{maps}/kept"),
            &json!({"metadata": {"finalizers": null}}),
        )
        .await;
    plane.until_gone(&path).await;
}
