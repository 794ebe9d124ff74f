//! Rule 4: start and end of watches.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::json;

use crate::common::{config_map, number, version, with};

#[tokio::test]
async fn rule_04_a_watch_without_a_resource_version_starts_with_added_events() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    for name in ["a", "b", "c"] {
        test.create(&maps, &config_map(name)).await;
    }
    for start in ["", "&resourceVersion=", "&resourceVersion=0"] {
        let mut watch = test.watch(&format!("{maps}?watch=1{start}")).await;
        let mut seen = Vec::new();
        for _ in 0..3 {
            let object = watch.event("ADDED").await;
            assert_eq!(
                (&object["kind"], &object["apiVersion"]),
                (&json!("ConfigMap"), &json!("v1"))
            );
            seen.push(object["metadata"]["name"].as_str().unwrap().to_owned());
        }
        seen.sort();
        assert_eq!(seen, ["a", "b", "c"], "{start}");
        // Changes follow the initial events.
        test.create(&maps, &config_map("d")).await;
        watch.event_of("ADDED", "d").await;
        test.delete(&format!("{maps}/d")).await.ok();
        watch.event_of("DELETED", "d").await;
    }
}

#[tokio::test]
async fn rule_04_a_watch_from_a_resource_version_reports_every_change_once_and_in_order() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    test.create(&maps, &config_map("before")).await;
    let (_, since) = test.list(&maps).await;
    let made = test.create(&maps, &config_map("a")).await;
    let changed = with(made.clone(), &[("/data/key", json!("other"))]);
    let changed = test.put(&format!("{maps}/a"), &changed).await.ok();
    test.delete(&format!("{maps}/a")).await.ok();
    let again = test.create(&maps, &config_map("a")).await;

    let mut watch = test
        .watch(&format!("{maps}?watch=1&resourceVersion={since}"))
        .await;
    assert_eq!(watch.event("ADDED").await, made);
    assert_eq!(watch.event("MODIFIED").await, changed);
    let deleted = watch.event_of("DELETED", "a").await;
    assert_eq!(deleted["data"], changed["data"], "its last state");
    assert_eq!(watch.event("ADDED").await, again);
    // From a resource version in between: only later changes.
    let middle = version(&changed);
    let mut watch = test
        .watch(&format!("{maps}?watch=1&resourceVersion={middle}"))
        .await;
    let deleted = watch.event_of("DELETED", "a").await;
    assert!(number(&deleted) > number(&changed));
    watch.event_of("ADDED", "a").await;
}

#[tokio::test]
async fn rule_04_a_watch_of_an_empty_collection_starts_immediately() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let (_, since) = test.list(&maps).await;
    // The server sends the response head before the first event.
    let mut watch = test
        .watch(&format!("{maps}?watch=1&resourceVersion={since}"))
        .await;
    assert_eq!(watch.headers["content-type"], "application/json");
    test.create(&maps, &config_map("a")).await;
    watch.event_of("ADDED", "a").await;
}

#[tokio::test]
async fn rule_04_a_watch_from_a_future_resource_version_waits() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let map = test.create(&maps, &config_map("a")).await;
    let future = number(&map) + 1_000_000;
    let mut watch = test
        .watch(&format!(
            "{maps}?watch=1&resourceVersion={future}&timeoutSeconds=1"
        ))
        .await;
    test.create(&maps, &config_map("b")).await;
    assert_eq!(watch.rest().await, [json!(null); 0]);
}

#[tokio::test]
async fn rule_04_a_compacted_resource_version_yields_one_error_event() {
    let test = ApiTest::exclusive().await;
    let maps = test.path("v1", "configmaps");
    test.create(&maps, &config_map("a")).await;
    test.expire_history().await;
    // The watch cache of the real server still contains compacted revisions. Revision 1
    // is older than the cache.
    let mut watch = test
        .watch(&format!("{maps}?watch=1&resourceVersion=1"))
        .await;
    let events = watch.rest().await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["type"], "ERROR");
    let status = &events[0]["object"];
    assert_eq!(
        (&status["kind"], &status["apiVersion"]),
        (&json!("Status"), &json!("v1"))
    );
    assert_eq!(status["status"], "Failure");
    assert_eq!(
        (&status["code"], &status["reason"]),
        (&json!(410), &json!("Expired"))
    );
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .starts_with("too old resource version: 1 (")
    );
    // A watch can continue from the resource version of a new list.
    let (_, since) = test.list(&maps).await;
    let mut watch = test
        .watch(&format!("{maps}?watch=1&resourceVersion={since}"))
        .await;
    test.create(&maps, &config_map("b")).await;
    watch.event_of("ADDED", "b").await;
}

#[tokio::test]
async fn rule_04_a_timeout_ends_a_watch_cleanly() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    test.create(&maps, &config_map("a")).await;
    let mut watch = test
        .watch(&format!("{maps}?watch=1&timeoutSeconds=1"))
        .await;
    watch.event_of("ADDED", "a").await;
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn rule_04_the_watch_parameter_has_several_forms() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    test.create(&maps, &config_map("a")).await;
    test.create(&maps, &config_map("b")).await;
    for value in ["watch=1", "watch=true", "watch"] {
        let mut watch = test.watch(&format!("{maps}?{value}")).await;
        watch.event("ADDED").await;
    }
    for value in ["watch=0", "watch=false"] {
        let list = test.get(&format!("{maps}?{value}")).await.ok();
        assert_eq!(list["kind"], "ConfigMapList");
    }
    // A watch of one object, selected by name.
    let one = format!("{maps}?watch=1&fieldSelector=metadata.name%3Db");
    let mut watch = test.watch(&one).await;
    watch.event_of("ADDED", "b").await;
    let patch = json!({"data": {"key": "other"}});
    for name in ["a", "b"] {
        let one = format!("{maps}/{name}");
        test.patch(&one, PatchType::Merge, &patch).await.ok();
    }
    watch.event_of("MODIFIED", "b").await;
    // The path of an object is read, not watched.
    let read = test.get(&format!("{maps}/b?watch=1")).await.ok();
    assert_eq!(read["kind"], "ConfigMap");
}

#[tokio::test]
async fn rule_04_the_deprecated_watch_paths_are_served() {
    let test = ApiTest::start().await;
    let namespace = test.namespace();
    let maps = test.path("v1", "configmaps");
    test.create(&maps, &config_map("a")).await;
    for path in [
        format!("/api/v1/watch/namespaces/{namespace}/configmaps"),
        format!("/api/v1/watch/namespaces/{namespace}/configmaps/a"),
    ] {
        let mut watch = test.watch(&path).await;
        watch.event_of("ADDED", "a").await;
    }
}

#[tokio::test]
async fn rule_04_a_watch_across_namespaces_reports_each_namespace() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let label = format!("labelSelector=of%3D{}", test.namespace());
    let (_, since) = test.list(&maps).await;
    let mut watch = test
        .watch(&format!(
            "/api/v1/configmaps?watch=1&{label}&resourceVersion={since}"
        ))
        .await;
    let labels = json!({"of": test.namespace()});
    let map = with(config_map("a"), &[("/metadata/labels", labels)]);
    test.create(&maps, &map).await;
    let other = map.clone();
    test.create(
        "/api/v1/namespaces/default/configmaps",
        &with(other, &[("/metadata/name", json!(test.namespace()))]),
    )
    .await;
    watch.event_of("ADDED", "a").await;
    let second = watch.event("ADDED").await;
    assert_eq!(second["metadata"]["namespace"], "default");
}

#[tokio::test]
async fn rule_04_a_non_numeric_resource_version_is_rejected() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    for query in ["resourceVersion=abc", "resourceVersion=1.5"] {
        let response = test.get(&format!("{maps}?watch=1&{query}")).await;
        let text = response.is(500)["message"].to_string();
        assert!(text.contains("strconv.ParseUint"), "{text}");
    }
}
