//! Status and scale of custom objects.

use longshore_conformance::PatchType;
use serde_json::json;

use super::Boxes;
use crate::common::{number, with};

#[tokio::test]
async fn rule_30_the_status_subresource_is_separate_if_enabled() {
    let boxes = Boxes::served(&[("/spec/versions/0/subresources", json!({"status": {}}))]).await;
    let (test, path) = (&boxes.test, &boxes.path);
    let object = with(
        boxes.object("a", json!({"colour": "red"})),
        &[("/status", json!({"phase": "Early"}))],
    );
    let made = test.create(path, &object).await;
    assert_eq!(made.get("status"), None, "{made}");
    let one = format!("{path}/a");
    let both = json!({"status": {"phase": "Ready"}, "spec": {"colour": "blue"}});
    let status = boxes.merge(&format!("{one}/status"), both).await;
    assert_eq!(
        (&status["status"]["phase"], &status["spec"]["colour"]),
        (&json!("Ready"), &json!("red"))
    );
    assert_eq!(status["metadata"]["generation"], 1);
    let other = json!({"status": {"phase": "Late"}, "spec": {"colour": "blue"}});
    let patched = boxes.merge(&one, other).await;
    assert_eq!(
        (&patched["status"]["phase"], &patched["spec"]["colour"]),
        (&json!("Ready"), &json!("blue"))
    );
    assert_eq!(patched["metadata"]["generation"], 2);
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let patched = boxes.merge(&one, labels).await;
    assert_eq!(patched["metadata"]["generation"], 2);
}

#[tokio::test]
async fn rule_30_without_a_status_subresource_the_status_is_an_ordinary_field() {
    let boxes = Boxes::served(&[]).await;
    let (test, path) = (&boxes.test, &boxes.path);
    let object = with(
        boxes.object("a", json!({"colour": "red"})),
        &[("/status", json!({"phase": "Early"}))],
    );
    let made = test.create(path, &object).await;
    assert_eq!(made["status"]["phase"], "Early");
    test.get(&format!("{path}/a/status"))
        .await
        .refused(404, "NotFound");
    let patch = json!({"status": {"phase": "Late"}});
    let patched = boxes.merge(&format!("{path}/a"), patch).await;
    assert_eq!(
        patched["metadata"]["generation"], 2,
        "the status is an ordinary field"
    );
}

#[tokio::test]
async fn rule_30_the_scale_uses_the_configured_paths() {
    let subresources = json!({"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }});
    let boxes = Boxes::served(&[("/spec/versions/0/subresources", subresources)]).await;
    let (test, path) = (&boxes.test, &boxes.path);
    let one = format!("{path}/a");
    let scale = format!("{one}/scale");
    boxes.make("a").await;
    // The object has no replicas yet.
    test.get(&scale).await.refused(500, "InternalError");
    let made = boxes.merge(&one, json!({"spec": {"replicas": 2}})).await;
    let status = json!({"status": {"replicas": 1, "selector": "app=box"}});
    boxes.merge(&format!("{one}/status"), status.clone()).await;
    let found = test.get(&scale).await.ok();
    assert_eq!(
        json!([found["kind"], found["apiVersion"]]),
        json!(["Scale", "autoscaling/v1"])
    );
    assert_eq!(found["spec"], json!({"replicas": 2}));
    assert_eq!(found["status"], status["status"]);
    let four = with(found, &[("/spec/replicas", json!(4))]);
    let scaled = test.put(&scale, &four).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 4);
    test.put(&scale, &four).await.refused(409, "Conflict");
    let scaled = boxes.merge(&scale, json!({"spec": {"replicas": 6}})).await;
    assert_eq!(scaled["spec"]["replicas"], 6);
    let now = test.get(&one).await.ok();
    assert_eq!(now["spec"]["replicas"], 6);
    assert!(number(&now) > number(&made));
    assert_eq!(number(&now), number(&scaled));
    assert_eq!(now["metadata"]["generation"], 4);
    let negative = json!({"spec": {"replicas": -1}});
    let response = test.patch(&scale, PatchType::Merge, &negative).await;
    response.refused_for(422, "Invalid", &[("FieldValueInvalid", ".spec.replicas")]);
}
