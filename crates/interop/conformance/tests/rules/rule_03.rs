//! Rule 3: paginated lists at a single revision.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use longshore_conformance::ApiTest;
use serde_json::{Value, json};

use crate::common::{config_map, items, number, version, with};

/// A test with ConfigMaps of these names, and the path of the collection.
async fn test_with_maps(names: &[&str]) -> (ApiTest, String) {
    with_maps(ApiTest::start().await, names).await
}

async fn with_maps(test: ApiTest, names: &[&str]) -> (ApiTest, String) {
    let maps = test.path("v1", "configmaps");
    for name in names {
        let map = with(config_map(name), &[("/metadata/labels", json!({"a": "b"}))]);
        test.create(&maps, &map).await;
    }
    (test, maps)
}

#[track_caller]
fn token(page: &Value) -> String {
    let token = page["metadata"]["continue"].as_str();
    token
        .unwrap_or_else(|| panic!("no continue: {}", page["metadata"]))
        .to_owned()
}

fn decode(token: &str) -> Value {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn encode(token: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(token.to_string())
}

#[tokio::test]
async fn rule_03_all_pages_are_one_snapshot_despite_concurrent_writes() {
    let (test, maps) = test_with_maps(&["a", "b", "c", "d", "e"]).await;
    let first = test.get(&format!("{maps}?limit=2")).await.ok();
    assert_eq!(items(&first), ["a", "b"]);
    let revision = version(&first);

    test.delete(&format!("{maps}/c")).await.ok();
    test.create(&maps, &config_map("cc")).await;
    let changed = with(config_map("d"), &[("/data/key", json!("changed"))]);
    test.put(&format!("{maps}/d"), &changed).await.ok();

    let next = format!("{maps}?limit=2&continue={}", token(&first));
    let second = test.get(&next).await.ok();
    assert_eq!(items(&second), ["c", "d"]);
    assert_eq!(second["items"][1]["data"]["key"], "value");
    assert_eq!(version(&second), revision);
    test.delete(&format!("{maps}/e")).await.ok();
    let next = format!("{maps}?limit=2&continue={}", token(&second));
    let third = test.get(&next).await.ok();
    assert_eq!(items(&third), ["e"]);
    assert_eq!(version(&third), revision);
    assert_eq!(third["metadata"].get("continue"), None, "{third}");
    // A watch can continue from the resource version of the pages.
    let mut watch = test
        .watch(&format!("{maps}?watch=1&resourceVersion={revision}"))
        .await;
    watch.event_of("DELETED", "c").await;
    watch.event_of("ADDED", "cc").await;
    watch.event_of("MODIFIED", "d").await;
    watch.event_of("DELETED", "e").await;
}

#[tokio::test]
async fn rule_03_pages_span_namespaces_and_the_limit_may_change() {
    let (test, maps) = test_with_maps(&["a", "b", "c", "d"]).await;
    let first = test.get(&format!("{maps}?limit=1")).await.ok();
    assert_eq!(items(&first), ["a"]);
    let next = format!("{maps}?limit=2&continue={}", token(&first));
    let second = test.get(&next).await.ok();
    assert_eq!(items(&second), ["b", "c"]);
    let rest = format!("{maps}?continue={}", token(&second));
    assert_eq!(items(&test.get(&rest).await.ok()), ["d"]);

    // Across namespaces, too, objects are in order.
    let label = format!("all={}", test.namespace());
    for name in ["x", "y"] {
        let labels = json!({"all": test.namespace()});
        let map = with(config_map(name), &[("/metadata/labels", labels)]);
        test.create(&maps, &map).await;
    }
    let wide = format!("/api/v1/configmaps?labelSelector={label}&limit=1");
    let first = test.get(&wide).await.ok();
    assert_eq!(items(&first), ["x"]);
    let next = format!("{wide}&continue={}", token(&first));
    assert_eq!(items(&test.get(&next).await.ok()), ["y"]);
}

#[tokio::test]
async fn rule_03_the_continue_token_is_base64url_of_version_revision_and_start() {
    let (test, maps) = test_with_maps(&["a", "b"]).await;
    let page = test.get(&format!("{maps}?limit=1")).await.ok();
    let token = decode(&token(&page));
    assert_eq!(token["v"], "meta.k8s.io/v1");
    assert_eq!(token["rv"], number(&page));
    assert!(token["start"].is_string(), "{token}");
    assert_eq!(token.as_object().unwrap().len(), 3, "{token}");
}

#[tokio::test]
async fn rule_03_only_an_empty_or_zero_resource_version_may_accompany_a_continue_token() {
    let (test, maps) = test_with_maps(&["a", "b"]).await;
    let page = test.get(&format!("{maps}?limit=1")).await.ok();
    let next = format!("{maps}?limit=1&continue={}", token(&page));
    for allowed in ["", "0"] {
        let response = test.get(&format!("{next}&resourceVersion={allowed}")).await;
        assert_eq!(items(&response.ok()), ["b"], "{allowed:?}");
    }
    let own = version(&page);
    for refused in ["1", &own] {
        let response = test.get(&format!("{next}&resourceVersion={refused}")).await;
        response.refused(400, "BadRequest");
    }
}

#[tokio::test]
async fn rule_03_an_invalid_continue_token_is_rejected() {
    let (test, maps) = test_with_maps(&["a", "b"]).await;
    let page = test.get(&format!("{maps}?limit=1")).await.ok();
    let good = decode(&token(&page));
    let text = |bytes: &str| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    for invalid in [
        "invalid".to_owned(),
        "%21%21".to_owned(),
        text(""),
        text("not JSON"),
        text("[]"),
        encode(&with(good.clone(), &[("/v", json!("meta.k8s.io/v2"))])),
        encode(&with(good.clone(), &[("/rv", json!(0))])),
        encode(&with(good.clone(), &[("/rv", json!("one"))])),
        encode(&with(good.clone(), &[("/start", json!(""))])),
        encode(&with(good, &[("/start", json!("../../secrets"))])),
    ] {
        if invalid.is_empty() {
            continue; // an empty token means no token
        }
        let response = test
            .get(&format!("{maps}?limit=1&continue={invalid}"))
            .await;
        response.refused(400, "BadRequest");
    }
}

#[tokio::test]
async fn rule_03_a_compacted_continue_token_expires_and_returns_an_inconsistent_one() {
    let test = ApiTest::exclusive().await;
    if test.skip_on_cached_history() {
        return;
    }
    let (test, maps) = with_maps(test, &["a", "b", "c"]).await;
    let page = test.get(&format!("{maps}?limit=1")).await.ok();
    test.delete(&format!("{maps}/b")).await.ok();
    test.create(&maps, &config_map("d")).await;
    test.expire_history().await;

    let old = format!("{maps}?limit=1&continue={}", token(&page));
    let status = test.get(&old).await.refused(410, "Expired");
    let other = token(&status);
    assert_eq!(decode(&other)["rv"], -1);
    assert_eq!(decode(&other)["start"], decode(&token(&page))["start"]);
    // The list continues after the same name, in the current state.
    let next = test
        .get(&format!("{maps}?limit=1&continue={other}"))
        .await
        .ok();
    assert_eq!(items(&next), ["c"]);
    assert!(number(&next) > number(&page));
    let last = format!("{maps}?limit=1&continue={}", token(&next));
    let last = test.get(&last).await.ok();
    assert_eq!(items(&last), ["d"]);
    assert_eq!(
        version(&last),
        version(&next),
        "the following pages are consistent"
    );
}

#[tokio::test]
async fn rule_03_a_compacted_exact_resource_version_expires() {
    let test = ApiTest::exclusive().await;
    if test.skip_on_cached_history() {
        return;
    }
    let (test, maps) = with_maps(test, &["a"]).await;
    let (_, then) = test.list(&maps).await;
    test.create(&maps, &config_map("b")).await;
    test.expire_history().await;
    let exact = format!("{maps}?resourceVersion={then}&resourceVersionMatch=Exact");
    let status = test.get(&exact).await.refused(410, "Expired");
    assert_eq!(status["metadata"].get("continue"), None, "{status}");
    // The same resource version without "exact" is valid; the order of the items is not
    // specified.
    let newer = test.get(&format!("{maps}?resourceVersion={then}")).await;
    let mut newer = items(&newer.ok());
    newer.sort();
    assert_eq!(newer, ["a", "b"]);
}

#[tokio::test]
async fn rule_03_remaining_items_are_counted_unless_a_selector_is_set() {
    let (test, maps) = test_with_maps(&["a", "b", "c"]).await;
    let first = test.get(&format!("{maps}?limit=1")).await.ok();
    assert_eq!(first["metadata"]["remainingItemCount"], 2);
    let next = format!("{maps}?limit=1&continue={}", token(&first));
    let second = test.get(&next).await.ok();
    assert_eq!(second["metadata"]["remainingItemCount"], 1);
    let next = format!("{maps}?limit=1&continue={}", token(&second));
    let last = test.get(&next).await.ok();
    assert_eq!(last["metadata"].get("remainingItemCount"), None);
    assert_eq!(last["metadata"].get("continue"), None);

    for selector in ["labelSelector=a", "fieldSelector=metadata.name!=x"] {
        let page = test.get(&format!("{maps}?limit=1&{selector}")).await.ok();
        token(&page);
        assert_eq!(
            page["metadata"].get("remainingItemCount"),
            None,
            "{selector}"
        );
    }
}

#[tokio::test]
async fn rule_03_a_page_with_a_selector_contains_only_matching_objects() {
    let (test, maps) = test_with_maps(&["a", "b", "c", "d"]).await;
    let label = json!({"metadata": {"labels": {"mark": "x"}}});
    for name in ["b", "d"] {
        let one = format!("{maps}/{name}");
        let merge = longshore_conformance::PatchType::Merge;
        test.patch(&one, merge, &label).await.ok();
    }
    let query = format!("{maps}?labelSelector=mark%3Dx&limit=1");
    let first = test.get(&query).await.ok();
    assert_eq!(items(&first), ["b"]);
    let next = format!("{query}&continue={}", token(&first));
    let second = test.get(&next).await.ok();
    assert_eq!(items(&second), ["d"]);
}

#[tokio::test]
async fn rule_03_a_list_within_the_limit_is_complete() {
    let (test, maps) = test_with_maps(&["a", "b"]).await;
    for query in ["", "?limit=0", "?limit=2", "?limit=100"] {
        let list = test.get(&format!("{maps}{query}")).await.ok();
        assert_eq!(items(&list), ["a", "b"], "{query}");
        assert_eq!(list["metadata"].get("continue"), None, "{query}");
        assert_eq!(list["metadata"].get("remainingItemCount"), None, "{query}");
    }
}
