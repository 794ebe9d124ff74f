//! Rule 6: bookmarks.

use longshore_conformance::{ApiTest, Watching};
use serde_json::Value;

use crate::common::{config_map, number, version};

fn kinds(events: &[Value]) -> Vec<&str> {
    let kinds = events.iter().map(|event| event["type"].as_str().unwrap());
    kinds.collect()
}

/// A short watch with bookmarks from one ConfigMap on, and another ConfigMap
/// that is made then.
async fn watch_another(test: &ApiTest, maps: &str, query: &str) -> (Watching, Value) {
    let since = version(&test.create(maps, &config_map("a")).await);
    let path = format!(
        "{maps}?watch=1&resourceVersion={since}&allowWatchBookmarks=true&timeoutSeconds=4{query}"
    );
    let watch = test.watch(&path).await;
    (watch, test.create(maps, &config_map("b")).await)
}

#[tokio::test]
async fn rule_06_a_bookmark_comes_before_the_deadline_and_says_only_the_version() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let (mut watch, other) = watch_another(&test, &maps, "").await;
    watch.event_of("ADDED", "b").await;
    let events = watch.rest().await;
    assert!(!events.is_empty(), "no bookmark came");
    for event in &events {
        assert_eq!(event["type"], "BOOKMARK", "{event}");
        let object = event["object"].as_object().unwrap();
        assert_eq!(object["kind"], "ConfigMap");
        assert_eq!(object["apiVersion"], "v1");
        assert!(number(&event["object"]) >= number(&other), "{event}");
        let metadata = object["metadata"].as_object().unwrap();
        let said = |fields: &serde_json::Map<String, Value>| {
            let said = fields.iter().filter(|(_, value)| !value.is_null());
            said.map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(said(metadata), ["resourceVersion"], "{event}");
        let mut fields = said(object);
        fields.sort();
        assert_eq!(fields, ["apiVersion", "kind", "metadata"], "{event}");
    }
    // A watch goes on from there.
    let from = version(&events[events.len() - 1]["object"]);
    let mut watch = test
        .watch(&format!("{maps}?watch=1&resourceVersion={from}"))
        .await;
    test.create(&maps, &config_map("c")).await;
    watch.event_of("ADDED", "c").await;
}

#[tokio::test]
async fn rule_06_without_asking_there_are_none() {
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
async fn rule_06_a_bookmark_tells_the_version_of_other_kinds_events_too() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    // Nothing of what happens matches the selector.
    let (mut watch, other) = watch_another(&test, &maps, "&labelSelector=none").await;
    let events = watch.rest().await;
    assert!(!events.is_empty(), "no bookmark came");
    assert_eq!(kinds(&events), vec!["BOOKMARK"; events.len()]);
    let last = &events[events.len() - 1]["object"];
    assert!(number(last) >= number(&other), "{last}");
}
