//! Rule 17: strategic merge patch: directives and merge keys.

mod directives;
mod keys;
mod order;

use longshore_conformance::{ApiTest, PatchType, Response};
use serde_json::{Value, json};

use crate::common::{config_map, deployment, with};

/// A test with a Deployment with these additional fields in its pod spec, and the path of
/// the Deployment.
async fn test(spec: Value) -> (ApiTest, String) {
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "deployments");
    let mut object = deployment("a");
    let fields = spec.as_object().unwrap().clone();
    let pods = object["spec"]["template"]["spec"].as_object_mut().unwrap();
    pods.extend(fields);
    test.create(&path, &object).await;
    (test, format!("{path}/a"))
}

/// Patches the pod spec and returns the new one.
async fn patch(test: &ApiTest, one: &str, spec: Value) -> Value {
    let patch = json!({"spec": {"template": {"spec": spec}}});
    let mut done = merged(test, one, patch).await;
    done["spec"]["template"]["spec"].take()
}

fn values<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let items = list
        .as_array()
        .unwrap_or_else(|| panic!("not a list: {list}"));
    items
        .iter()
        .map(|item| item[key].as_str().unwrap())
        .collect()
}

/// A container with these additional fields.
fn container(name: &str, fields: Value) -> Value {
    let mut container = json!({"name": name, "image": "image"});
    let fields = fields.as_object().unwrap().clone();
    container.as_object_mut().unwrap().extend(fields);
    container
}

/// A test with a ConfigMap that has this value at a JSON pointer, and the path of the
/// ConfigMap.
async fn map_with(pointer: &str, value: Value) -> (ApiTest, String) {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let map = with(config_map("a"), &[(pointer, value)]);
    test.create(&maps, &map).await;
    (test, format!("{maps}/a"))
}

/// Merges a patch into the object at a path and returns the result.
async fn merged(test: &ApiTest, path: &str, patch: Value) -> Value {
    test.patch(path, PatchType::Strategic, &patch).await.ok()
}

/// Sends a patch that must be rejected. The status code differs between servers.
async fn refused(test: &ApiTest, one: &str, patch: Value) -> Response {
    let response = test.patch(one, PatchType::Strategic, &patch).await;
    assert!(
        [400, 422, 500].contains(&response.code),
        "{}",
        response.text()
    );
    response
}
