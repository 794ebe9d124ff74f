//! Namespaces: termination and finalization.

use longshore_engine::Subresource;
use serde_json::json;

use crate::support::{api, names, pod, status};

#[tokio::test]
async fn a_namespace_terminates_and_is_removed_when_finalized() {
    let api = api();
    let namespace = json!({"metadata": {"name": "n"}});
    let made = api
        .create("namespaces", namespace.clone())
        .await
        .unwrap()
        .value();
    assert_eq!(made["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(made["status"]["phase"], "Active");
    assert_eq!(
        made["metadata"]["labels"]["kubernetes.io/metadata.name"],
        "n"
    );
    api.delete("namespaces", "n").await.unwrap();
    let value = api.get("namespaces", "n").unwrap().value();
    assert_eq!(value["status"]["phase"], "Terminating");
    let refused = api
        .create_in("n", "pods", pod("p"))
        .await
        .unwrap_err()
        .status();
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.message,
        r#"pods "p" is forbidden: unable to create new content in namespace n because it is being terminated"#
    );
    assert_eq!(
        refused.details.unwrap().causes[0].reason,
        "NamespaceTerminating"
    );
    let mut empty = value;
    empty["spec"] = json!({});
    api.update_part("namespaces", "n", Subresource::Finalize, empty)
        .await
        .unwrap();
    assert!(api.get("namespaces", "n").is_err());
    api.create("namespaces", namespace).await.unwrap();
}

#[tokio::test]
async fn an_update_does_not_touch_a_namespaces_finalizers() {
    let api = api();
    api.create("namespaces", json!({"metadata": {"name": "n"}}))
        .await
        .unwrap();
    let sent = json!({"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"finalizers": []}});
    let value = api.update("namespaces", "n", sent).await.unwrap().value();
    assert_eq!(value["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(value["metadata"]["labels"]["a"], "b");
}

#[tokio::test]
async fn finalize_replaces_a_namespace_except_its_status() {
    let api = api();
    let namespace = json!({"metadata": {"name": "n", "labels": {"a": "b"}, "finalizers": ["a/b"]}});
    api.create("namespaces", namespace).await.unwrap();
    let finalize = |object| api.update_part("namespaces", "n", Subresource::Finalize, object);
    let sent = json!({
        "metadata": {"name": "n", "labels": {"c": "d"}, "annotations": {"e": "f"}},
        "spec": {"finalizers": ["x/y", "kubernetes"]},
        "status": {"phase": "Terminating"},
    });
    let value = finalize(sent).await.unwrap().value();
    let labels = json!({"c": "d", "kubernetes.io/metadata.name": "n"});
    assert_eq!(value["metadata"]["labels"], labels);
    assert_eq!(value["metadata"]["annotations"], json!({"e": "f"}));
    assert_eq!(value["metadata"].get("finalizers"), None);
    assert_eq!(value["spec"]["finalizers"], json!(["x/y", "kubernetes"]));
    assert_eq!(value["status"]["phase"], "Active");
    // A namespace without finalizers is not removed before a deletion.
    let value = finalize(json!({"metadata": {"name": "n"}}))
        .await
        .unwrap()
        .value();
    assert_eq!(value["spec"], json!({}));
    let wrong = json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["x/y", "z"]}});
    let refused = finalize(wrong).await.unwrap_err().status();
    assert_eq!(refused.code, 422);
    let field = &refused.details.unwrap().causes[0].field;
    assert_eq!(field, "spec.finalizers[1]");
}

#[tokio::test]
async fn the_initial_namespaces_exist_and_are_protected() {
    let api = api();
    let expected = ["default", "kube-node-lease", "kube-public", "kube-system"];
    assert_eq!(names(&api.list("namespaces")), expected);
    assert_eq!(api.list("serviceaccounts").items.len(), 4);
    let (code, _, message) = status(api.delete("namespaces", "default").await);
    assert_eq!(code, 403);
    assert_eq!(
        message,
        r#"namespaces "default" is forbidden: this namespace may not be deleted"#
    );
}
