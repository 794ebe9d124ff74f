//! Rule 6: bookmarks.

use longshore_conformance::{ApiTest, Watch};
use serde_json::Value;

use crate::common::{config_map, number, version};

fn kinds(events: &[Value]) -> Vec<&str> {
    let kinds = events.iter().map(|event| event["type"].as_str().unwrap());
    kinds.collect()
}

/// A short watch with bookmarks, which starts at one ConfigMap, and a second ConfigMap
/// created later.
async fn watch_second_map(test: &ApiTest, maps: &str, query: &str) -> (Watch, Value) {
    let since = version(&test.create(maps, &config_map("a")).await);
    let path = format!(
        "{maps}?watch=1&resourceVersion={since}&allowWatchBookmarks=true&timeoutSeconds=4{query}"
    );
    let watch = test.watch(&path).await;
    (watch, test.create(maps, &config_map("b")).await)
}

#[tokio::test]
async fn rule_06_a_bookmark_precedes_the_timeout_and_has_only_a_resource_version() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let (mut watch, other) = watch_second_map(&test, &maps, "").await;
    watch.event_of("ADDED", "b").await;
    let events = watch.rest().await;
    assert!(!events.is_empty(), "no bookmark was sent");
    for event in &events {
        assert_eq!(event["type"], "BOOKMARK", "{event}");
        let object = event["object"].as_object().unwrap();
        assert_eq!(object["kind"], "ConfigMap");
        assert_eq!(object["apiVersion"], "v1");
        assert!(number(&event["object"]) >= number(&other), "{event}");
        let metadata = object["metadata"].as_object().unwrap();
        let names = |fields: &serde_json::Map<String, Value>| {
            let present = fields.iter().filter(|(_, value)| !value.is_null());
            present.map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(metadata), ["resourceVersion"], "{event}");
        let mut fields = names(object);
        fields.sort();
        assert_eq!(fields, ["apiVersion", "kind", "metadata"], "{event}");
    }
    // A watch can continue from a bookmark.
    let from = version(&events[events.len() - 1]["object"]);
    let mut watch = test
        .watch(&format!("{maps}?watch=1&resourceVersion={from}"))
        .await;
    test.create(&maps, &config_map("c")).await;
    watch.event_of("ADDED", "c").await;
}

#[tokio::test]
async fn rule_06_no_bookmarks_unless_requested() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    test.create(&maps, &config_map("a")).await;
    for query in ["", "&allowWatchBookmarks=false"] {
        let mut watch = test
            .watch(&format!("{maps}?watch=1&timeoutSeconds=3{query}"))
            .await;
        assert_eq!(kinds(&watch.rest().await), ["ADDED"]);
    }
}

#[tokio::test]
async fn rule_06_a_bookmark_includes_changes_outside_the_selector() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    // No change matches the selector.
    let (mut watch, other) = watch_second_map(&test, &maps, "&labelSelector=none").await;
    let events = watch.rest().await;
    assert!(!events.is_empty(), "no bookmark was sent");
    assert_eq!(kinds(&events), vec!["BOOKMARK"; events.len()]);
    let last = &events[events.len() - 1]["object"];
    assert!(number(last) >= number(&other), "{last}");
}
