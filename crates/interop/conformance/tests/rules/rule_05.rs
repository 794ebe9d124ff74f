//! Rule 5: watches with selectors; deletes have their own resource versions.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::json;

use crate::common::{config_map, number, pod, version, with};

#[tokio::test]
async fn rule_05_leaving_the_selector_is_deleted_and_entering_it_is_added() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    test.create(&maps, &config_map("a")).await;
    let (_, since) = test.list(&maps).await;
    let label = async |value: serde_json::Value| {
        let patch = json!({"metadata": {"labels": {"app": value}}, "data": {"app": value}});
        test.patch(&one, PatchType::Merge, &patch).await.ok()
    };
    let web = label(json!("web")).await;
    let changed = json!({"data": {"key": "other"}});
    let changed = test.patch(&one, PatchType::Merge, &changed).await.ok();
    let db = label(json!("db")).await;
    label(json!("cache")).await;
    let back = label(json!("web")).await;
    test.delete(&one).await.ok();

    let mut watch = test
        .watch(&format!(
            "{maps}?watch=1&resourceVersion={since}&labelSelector=app%3Dweb"
        ))
        .await;
    assert_eq!(
        watch.event("ADDED").await,
        web,
        "the object enters the selection"
    );
    assert_eq!(
        watch.event("MODIFIED").await,
        changed,
        "the object stays in the selection"
    );
    let left = watch.event("DELETED").await;
    let expected = with(
        changed,
        &[("/metadata/resourceVersion", json!(version(&db)))],
    );
    assert_eq!(
        left, expected,
        "the old state with the new resource version"
    );
    // The watch does not send changes outside the selection.
    assert_eq!(watch.event("ADDED").await, back);
    let gone = watch.event("DELETED").await;
    assert_eq!(gone["data"], back["data"]);
    assert!(number(&gone) > number(&back));
}

#[tokio::test]
async fn rule_05_selectors_apply_to_initial_and_live_events() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let web = with(
        config_map("a"),
        &[("/metadata/labels", json!({"app": "web"}))],
    );
    test.create(&maps, &web).await;
    test.create(&maps, &config_map("b")).await;
    let mut watch = test
        .watch(&format!("{maps}?watch=1&labelSelector=app%3Dweb"))
        .await;
    watch.event_of("ADDED", "a").await;
    let label = |value| json!({"metadata": {"labels": {"app": value}}});
    let merge = PatchType::Merge;
    let left = test
        .patch(&format!("{maps}/a"), merge, &label(json!(null)))
        .await
        .ok();
    let seen = watch.event_of("DELETED", "a").await;
    assert_eq!(version(&seen), version(&left));
    assert_eq!(seen["metadata"]["labels"]["app"], "web");
    test.patch(&format!("{maps}/b"), merge, &label(json!("web")))
        .await
        .ok();
    watch.event_of("ADDED", "b").await;
}

#[tokio::test]
async fn rule_05_field_selectors_filter_events_like_label_selectors() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    test.create(&pods, &pod("a")).await;
    let (_, since) = test.list(&pods).await;
    let mut watch = test
        .watch(&format!(
            "{pods}?watch=1&resourceVersion={since}&fieldSelector=status.phase%3DRunning"
        ))
        .await;
    let phase = async |phase: &str| {
        let patch = json!({"status": {"phase": phase}});
        let status = format!("{pods}/a/status");
        test.patch(&status, PatchType::Merge, &patch).await.ok()
    };
    let running = phase("Running").await;
    let failed = phase("Failed").await;
    assert_eq!(watch.event("ADDED").await, running);
    let left = watch.event_of("DELETED", "a").await;
    assert_eq!(left["status"]["phase"], "Running");
    assert_eq!(version(&left), version(&failed));
}

#[tokio::test]
async fn rule_05_a_deleted_event_has_its_own_resource_version() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let made = test.create(&maps, &config_map("a")).await;
    let since = version(&made);
    test.delete(&format!("{maps}/a")).await.ok();
    let (_, after) = test.list(&maps).await;
    let mut watch = test
        .watch(&format!("{maps}?watch=1&resourceVersion={since}"))
        .await;
    let deleted = watch.event("DELETED").await;
    assert!(number(&deleted) > number(&made));
    assert!(number(&deleted) <= after.parse().unwrap());
    let state = with(
        deleted.clone(),
        &[("/metadata/resourceVersion", json!(since))],
    );
    assert_eq!(state, made, "the event has the last state");
    // A watch from this resource version does not send the event again.
    let from = version(&deleted);
    let mut watch = test
        .watch(&format!("{maps}?watch=1&resourceVersion={from}"))
        .await;
    test.create(&maps, &config_map("b")).await;
    watch.event_of("ADDED", "b").await;
}

#[tokio::test]
async fn rule_05_deleting_a_collection_sends_one_event_per_object() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    for name in ["a", "b"] {
        test.create(&maps, &config_map(name)).await;
    }
    let (_, since) = test.list(&maps).await;
    test.delete(&maps).await.ok();
    let mut watch = test
        .watch(&format!("{maps}?watch=1&resourceVersion={since}"))
        .await;
    let mut versions = Vec::new();
    for _ in 0..2 {
        versions.push(number(&watch.event("DELETED").await));
    }
    assert!(versions[0] < versions[1], "{versions:?}");
}
