//! Rule 7: lists that come as a watch.

use longshore_conformance::ApiTest;
use serde_json::json;

use crate::common::{config_map, number, version};

const WATCH_LIST: &str = "lists as watches (sendInitialEvents) are of 1.27";
const ASKED: &str = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true";

#[tokio::test]
async fn rule_07_initial_events_end_with_an_annotated_bookmark() {
    let test = ApiTest::start().await;
    if test.lacks(WATCH_LIST) {
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
        let query = format!("{maps}?{ASKED}&resourceVersionMatch=NotOlderThan{version}");
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
async fn rule_07_an_empty_collection_ends_at_once() {
    let test = ApiTest::start().await;
    if test.lacks(WATCH_LIST) {
        return;
    }
    let maps = test.path("v1", "configmaps");
    let query = format!("{maps}?{ASKED}&resourceVersionMatch=NotOlderThan");
    let mut watch = test.watch(&query).await;
    let end = watch.event("BOOKMARK").await;
    assert_eq!(
        end["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    // It is where a list would have been.
    let (_, since) = test.list(&maps).await;
    assert_eq!(version(&end), since);
}

#[tokio::test]
async fn rule_07_without_initial_events_the_present_is_not_told() {
    let test = ApiTest::start().await;
    if test.lacks(WATCH_LIST) {
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
async fn rule_07_it_needs_not_older_than() {
    let test = ApiTest::start().await;
    if test.lacks(WATCH_LIST) {
        return;
    }
    let maps = test.path("v1", "configmaps");
    let refused = async |query: &str, causes: &[(&str, &str)]| {
        let answer = test.get(&format!("{maps}?{query}")).await;
        answer.refused_for(422, "Invalid", causes);
    };
    let forbidden = ("FieldValueForbidden", "resourceVersionMatch");
    let unsupported = ("FieldValueNotSupported", "resourceVersionMatch");
    refused(ASKED, &[forbidden]).await;
    refused("watch=1&sendInitialEvents=false", &[forbidden]).await;
    let exact = format!("{ASKED}&resourceVersionMatch=Exact&resourceVersion=1");
    refused(&exact, &[forbidden, unsupported]).await;
    let list = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1";
    refused(list, &[("FieldValueForbidden", "sendInitialEvents")]).await;
}

#[tokio::test]
async fn rule_07_a_match_alone_is_no_matter_of_a_watch() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let query = "watch=1&resourceVersion=1&resourceVersionMatch=NotOlderThan";
    let answer = test.get(&format!("{maps}?{query}")).await;
    answer.refused_for(
        422,
        "Invalid",
        &[("FieldValueForbidden", "resourceVersionMatch")],
    );
}
