//! The scale subresource of custom objects and of a Deployment.

use longshore_engine::{Patch, ReadVersion, Subresource, WriteOptions};
use longshore_model::PatchKind;
use serde_json::json;

use super::{create, get, patch, put, shoe, shoe_kind, shoes};
use crate::support::{Api, api, status};

#[tokio::test]
async fn rule_15_scale_of_custom_objects() {
    let api = shoes().await;
    create(&api, "v1", shoe("a")).await.unwrap();
    let kind = shoe_kind(&api, "v1");
    let scale = || {
        let found = api
            .0
            .get_scale(&kind, Some("default"), "a", ReadVersion::Latest);
        found.map(|scale| scale.value())
    };
    let (code, _, message) = status(scale());
    assert_eq!(code, 500);
    assert!(message.contains(r#"the spec replicas field ".spec.replicas" does not exist"#));
    let body = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 3}});
    let set = put(&api, "a", Subresource::Scale, body)
        .await
        .unwrap()
        .value();
    assert_eq!(
        (&set["kind"], &set["spec"]),
        (&json!("Scale"), &json!({"replicas": 3}))
    );
    let part = json!({"status": {"replicas": 2, "selector": "a=b"}});
    patch(&api, "v1", Subresource::Status, PatchKind::Merge, part)
        .await
        .unwrap();
    assert_eq!(
        scale().unwrap()["status"],
        json!({"replicas": 2, "selector": "a=b"})
    );
    let body = json!({"spec": {"replicas": 5}});
    let set = patch(&api, "v1", Subresource::Scale, PatchKind::Merge, body)
        .await
        .unwrap();
    assert_eq!(set.value()["spec"]["replicas"], 5);
    let now = get(&api, "v1", "a").unwrap();
    assert_eq!(
        (&now["spec"]["replicas"], &now["metadata"]["generation"]),
        (&json!(5), &json!(3))
    );
    let body = json!({"spec": {"replicas": -4}});
    let (code, _, message) =
        status(patch(&api, "v1", Subresource::Scale, PatchKind::Merge, body).await);
    assert_eq!(code, 422);
    assert_eq!(
        message,
        r#"Shoe.example.com "a" is invalid: .spec.replicas: Invalid value: -4: should be a non-negative integer"#
    );
    let stale = json!({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 1}});
    let (code, ..) = status(put(&api, "a", Subresource::Scale, stale).await);
    assert_eq!(code, 409);
}

#[tokio::test]
async fn rule_15_scale_of_a_deployment() {
    let api = api();
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}});
    api.create("deployments", deployment).await.unwrap();
    let target = Api::target("deployments", "d");
    let patch = |replicas: i64| Patch {
        target: target.clone(),
        subresource: Subresource::Scale,
        kind: PatchKind::Merge,
        body: json!({"spec": {"replicas": replicas}}),
        options: WriteOptions::default(),
    };
    let scale = api.0.patch(patch(4)).await.unwrap().object.value();
    assert_eq!(scale["spec"]["replicas"], 4);
    assert_eq!(scale["status"]["selector"], "a=b");
    assert_eq!(
        api.get("deployments", "d").unwrap().value()["spec"]["replicas"],
        4
    );
    let (code, _, message) = status(api.0.patch(patch(-1)).await);
    assert_eq!(code, 422);
    assert_eq!(
        message,
        r#"Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"#
    );
}
