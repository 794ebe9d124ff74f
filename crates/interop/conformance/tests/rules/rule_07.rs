//! Rule 7: streaming lists.

use longshore_conformance::ApiTest;
use serde_json::json;

use crate::common::{config_map, number, version};

const WATCH_LIST: &str = "streaming lists (sendInitialEvents) require Kubernetes 1.27";
const INITIAL_EVENTS: &str = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true";

#[tokio::test]
async fn rule_07_initial_events_end_with_an_annotated_bookmark() {
    let test = ApiTest::start().await;
    if test.skip_on_old(WATCH_LIST) {
        return;
    }
    let maps = test.path("v1", "configmaps");
    for name in ["a", "b"] {
        test.create(&maps, &config_map(name)).await;
    }
    let (_, now) = test.list(&maps).await;
    for version in [
        "",
        "&resourceVersion=",
        "&resourceVersion=0",
        &format!("&resourceVersion={now}"),
    ] {
        let query = format!("{maps}?{INITIAL_EVENTS}&resourceVersionMatch=NotOlderThan{version}");
        let mut watch = test.watch(&query).await;
        watch.event_of("ADDED", "a").await;
        watch.event_of("ADDED", "b").await;
        let end = watch.event("BOOKMARK").await;
        let annotations = json!({"k8s.io/initial-events-end": "true"});
        assert_eq!(end["metadata"]["annotations"], annotations);
        assert_eq!(end["kind"], "ConfigMap");
        assert!(number(&end) >= now.parse().unwrap());
        test.create(&maps, &config_map("c")).await;
        watch.event_of("ADDED", "c").await;
        test.delete(&format!("{maps}/c")).await.ok();
    }
}

#[tokio::test]
async fn rule_07_an_empty_collection_sends_the_bookmark_immediately() {
    let test = ApiTest::start().await;
    if test.skip_on_old(WATCH_LIST) {
        return;
    }
    let maps = test.path("v1", "configmaps");
    let query = format!("{maps}?{INITIAL_EVENTS}&resourceVersionMatch=NotOlderThan");
    let mut watch = test.watch(&query).await;
    let end = watch.event("BOOKMARK").await;
    assert_eq!(
        end["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    // The bookmark has the resource version that a list would have.
    let (_, since) = test.list(&maps).await;
    assert_eq!(version(&end), since);
}

#[tokio::test]
async fn rule_07_without_initial_events_only_changes_are_sent() {
    let test = ApiTest::start().await;
    if test.skip_on_old(WATCH_LIST) {
        return;
    }
    let maps = test.path("v1", "configmaps");
    test.create(&maps, &config_map("a")).await;
    let query = format!("{maps}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
    let mut watch = test.watch(&query).await;
    test.create(&maps, &config_map("b")).await;
    watch.event_of("ADDED", "b").await;
}

#[tokio::test]
async fn rule_07_send_initial_events_requires_not_older_than() {
    let test = ApiTest::start().await;
    if test.skip_on_old(WATCH_LIST) {
        return;
    }
    let maps = test.path("v1", "configmaps");
    let refused = async |query: &str, causes: &[(&str, &str)]| {
        let response = test.get(&format!("{maps}?{query}")).await;
        response.refused_for(422, "Invalid", causes);
    };
    let forbidden = ("FieldValueForbidden", "resourceVersionMatch");
    let unsupported = ("FieldValueNotSupported", "resourceVersionMatch");
    refused(INITIAL_EVENTS, &[forbidden]).await;
    refused("watch=1&sendInitialEvents=false", &[forbidden]).await;
    let exact = format!("{INITIAL_EVENTS}&resourceVersionMatch=Exact&resourceVersion=1");
    refused(&exact, &[forbidden, unsupported]).await;
    let list = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1";
    refused(list, &[("FieldValueForbidden", "sendInitialEvents")]).await;
}

#[tokio::test]
async fn rule_07_resource_version_match_requires_send_initial_events() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let query = "watch=1&resourceVersion=1&resourceVersionMatch=NotOlderThan";
    let response = test.get(&format!("{maps}?{query}")).await;
    response.refused_for(
        422,
        "Invalid",
        &[("FieldValueForbidden", "resourceVersionMatch")],
    );
}
