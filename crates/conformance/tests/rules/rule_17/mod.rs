//! Rule 17: strategic merge: directives and merge keys.

mod directives;
mod keys;
mod order;

use longshore_conformance::{Answer, ApiTest, PatchType};
use serde_json::{Value, json};

use crate::common::{config_map, deployment, with};

/// A test with a Deployment whose pods' spec has these fields besides, and
/// the Deployment's path.
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

/// Patches the pods' spec; gives the new one.
async fn patch(test: &ApiTest, one: &str, spec: Value) -> Value {
    let patch = json!({"spec": {"template": {"spec": spec}}});
    let mut done = merged(test, one, patch).await;
    done["spec"]["template"]["spec"].take()
}

fn values<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let items = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    items
        .iter()
        .map(|item| item[key].as_str().unwrap())
        .collect()
}

/// A container with these fields besides.
fn container(name: &str, fields: Value) -> Value {
    let mut container = json!({"name": name, "image": "image"});
    let fields = fields.as_object().unwrap().clone();
    container.as_object_mut().unwrap().extend(fields);
    container
}

/// A test with a ConfigMap that has a value at a pointer, and its path.
async fn map_with(pointer: &str, value: Value) -> (ApiTest, String) {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let map = with(config_map("a"), &[(pointer, value)]);
    test.create(&maps, &map).await;
    (test, format!("{maps}/a"))
}

/// What is at a path when a patch is merged into it.
async fn merged(test: &ApiTest, path: &str, patch: Value) -> Value {
    test.patch(path, PatchType::Strategic, &patch).await.ok()
}

/// A patch that must be refused; with which code is not the same everywhere.
async fn refused(test: &ApiTest, one: &str, patch: Value) -> Answer {
    let answer = test.patch(one, PatchType::Strategic, &patch).await;
    assert!([400, 422, 500].contains(&answer.code), "{}", answer.text());
    answer
}
