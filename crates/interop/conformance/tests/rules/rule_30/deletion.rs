//! Deletion and re-creation of custom kinds.

use serde_json::json;

use super::{Boxes, is_true};
use crate::common::items;

const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

#[tokio::test]
async fn rule_30_deleting_a_definition_waits_for_its_objects() {
    let boxes = Boxes::served(&[]).await;
    let (test, path) = (&boxes.test, &boxes.path);
    boxes.make_held("a").await;
    let mut watch = test
        .watch(&format!("{path}?watch=true&resourceVersion=0"))
        .await;
    watch.event_of("ADDED", "a").await;
    let pending = test.delete(&boxes.one).await.ok();
    assert_eq!(pending["metadata"]["finalizers"], json!([CLEANUP]));
    watch.event_of("MODIFIED", "a").await;
    let now = test.get(&boxes.one).await.ok();
    assert!(is_true(&now, "Terminating"), "{now}");
    let missing = format!("/apis/{}/v1/namespaces/none/boxes", boxes.group);
    for path in [path, &missing] {
        let response = test.post(path, &boxes.object("b", json!({}))).await;
        let (old, new) = ((405, "MethodNotAllowed"), (403, "Forbidden"));
        let (code, reason) = test.old_or_new(
            old,
            new,
            "creating an object of a terminating kind is forbidden",
        );
        response.refused(code, reason);
    }
    let release = json!({"metadata": {"finalizers": null}});
    boxes.merge(&format!("{path}/a"), release).await;
    watch.event_of("DELETED", "a").await;
    boxes.wait_deleted().await;
}

#[tokio::test]
async fn rule_30_deleting_a_definition_deletes_its_objects() {
    let boxes = Boxes::served(&[]).await;
    boxes.make("a").await;
    boxes.test.delete(&boxes.one).await.ok();
    boxes.wait_deleted().await;
    // A new definition of the kind has no objects.
    boxes.serve().await;
    let list = boxes.test.get(&boxes.path).await.ok();
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn rule_30_a_terminating_definition_can_be_changed() {
    // The finalizers of custom kinds do not require a domain.
    let boxes = Boxes::served(&[("/metadata/finalizers", json!(["hold"]))]).await;
    boxes.make_held("a").await;
    let path = format!("{}?propagationPolicy=Foreground", boxes.one);
    boxes.test.delete(&path).await.ok();
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let now = boxes.merge(&boxes.one, labels).await;
    let metadata = &now["metadata"];
    assert_eq!(metadata["finalizers"], json!(["hold", CLEANUP]));
    // The policy is ignored, and there is neither a grace period nor a new generation.
    assert_eq!(metadata["generation"], 1);
    assert_eq!(metadata.get("deletionGracePeriodSeconds"), None);
    let release = json!({"metadata": {"finalizers": null}});
    boxes.merge(&boxes.one, release.clone()).await;
    boxes.wait_deleted().await;
    // Removing the finalizer manually keeps the objects in the store.
    boxes.serve().await;
    let list = boxes.test.get(&boxes.path).await.ok();
    assert_eq!(items(&list), ["a"]);
    let one = format!("{}/a", boxes.path);
    boxes.merge(&one, release).await;
}
