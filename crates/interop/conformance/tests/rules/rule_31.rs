//! Rule 31: limits.

use longshore_conformance::ApiTest;
use serde_json::{Value, json};

use crate::common::config_map;

const MEBIBYTE: usize = 1 << 20;

#[tokio::test]
async fn rule_31_a_body_over_three_mebibytes_is_too_large() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let body = json!({"metadata": {"name": "a"}, "data": {"a": "x".repeat(3 * MEBIBYTE)}});
    test.post(&maps, &body)
        .await
        .refused(413, "RequestEntityTooLarge");
    test.create(&maps, &config_map("a")).await;
    let one = format!("{maps}/a");
    test.put(&one, &body)
        .await
        .refused(413, "RequestEntityTooLarge");
    let merge = longshore_conformance::PatchType::Merge;
    let response = test.patch(&one, merge, &body).await;
    response.refused(413, "RequestEntityTooLarge");
}

#[tokio::test]
async fn rule_31_an_object_over_one_and_a_half_mebibytes_is_rejected() {
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "controllerrevisions");
    let revision = |size: usize| json!({"metadata": {"name": "a"}, "revision": 1, "data": {"a": "x".repeat(size)}});
    let response = test.post(&path, &revision(8 * MEBIBYTE / 5)).await;
    let status = response.is(500);
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["message"], "etcdserver: request is too large");
    test.get(&format!("{path}/a"))
        .await
        .refused(404, "NotFound");
    test.create(&path, &revision(6 * MEBIBYTE / 5)).await;
}

#[tokio::test]
async fn rule_31_config_maps_and_secrets_are_limited_to_one_mebibyte() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let map = |name: &str, size: usize| json!({"metadata": {"name": name}, "data": {"a": "x".repeat(size)}});
    let response = test.post(&maps, &map("a", MEBIBYTE + 1)).await;
    response.refused_for(422, "Invalid", &[("FieldValueTooLong", "[]")]);
    test.create(&maps, &map("a", MEBIBYTE)).await;
    let secrets = test.path("v1", "secrets");
    let secret = |name: &str, size: usize| json!({"metadata": {"name": name}, "stringData": {"a": "x".repeat(size)}});
    let response = test.post(&secrets, &secret("a", MEBIBYTE + 1)).await;
    response.refused_for(422, "Invalid", &[("FieldValueTooLong", "data")]);
    test.create(&secrets, &secret("b", MEBIBYTE / 2)).await;
}

fn has_self_link(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.contains_key("selfLink") || fields.values().any(has_self_link)
        }
        Value::Array(items) => items.iter().any(has_self_link),
        _ => false,
    }
}

#[tokio::test]
async fn rule_31_objects_have_no_self_link() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let made = test.create(&maps, &config_map("a")).await;
    let read = test.get(&format!("{maps}/a")).await.ok();
    let list = test.get(&maps).await.ok();
    let mut watch = test.watch(&format!("{maps}?watch=1")).await;
    let event = watch.event("ADDED").await;
    for value in [made, read, list, event] {
        assert!(!has_self_link(&value), "{value}");
    }
}
