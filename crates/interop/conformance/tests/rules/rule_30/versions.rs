//! Several versions of a kind.

use serde_json::json;

use super::{Boxes, version};

#[tokio::test]
async fn rule_30_all_versions_serve_the_same_object() {
    let versions = json!([
        version("v1", true, false),
        version("v2", true, true),
        version("v3beta1", false, false)
    ]);
    let boxes = Boxes::served(&[("/spec/versions", versions)]).await;
    let (test, group) = (&boxes.test, &boxes.group);
    boxes.make("a").await;
    for version in ["v1", "v2"] {
        let list = test.get(&boxes.via(version)).await.ok();
        assert_eq!(list["kind"], "BoxList");
        let shown = &list["items"][0]["apiVersion"];
        assert_eq!(*shown, format!("{group}/{version}"));
    }
    let other = format!("{}/a", boxes.via("v2"));
    let shown = test.get(&other).await.ok();
    assert_eq!(shown["spec"]["colour"], "red");
    boxes
        .merge(&other, json!({"spec": {"colour": "blue"}}))
        .await;
    let first = test.get(&format!("{}/a", boxes.path)).await.ok();
    assert_eq!(first["apiVersion"], format!("{group}/v1"));
    assert_eq!(first["spec"]["colour"], "blue");
    assert_eq!(first["metadata"]["uid"], shown["metadata"]["uid"]);
    assert_eq!(test.get(&boxes.via("v3beta1")).await.code, 404);
    let found = test.get(&format!("/apis/{group}")).await.ok();
    let found = found["versions"].as_array().unwrap().iter();
    let found: Vec<_> = found.map(|version| &version["version"]).collect();
    assert_eq!(found, ["v2", "v1"]);
    let mut watch = test.watch(&format!("{}?watch=1", boxes.via("v2"))).await;
    let seen = watch.event_of("ADDED", "a").await;
    assert_eq!(seen["apiVersion"], format!("{group}/v2"));
}
