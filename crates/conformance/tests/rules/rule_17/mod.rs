//! Rule 17: strategic merge: directives and merge keys.

mod directives;
mod keys;
mod order;

use longshore_conformance::{Answer, Judge, PatchType};
use serde_json::{Value, json};

use crate::common::{config_map, deployment, with};

/// A judge with a Deployment whose pods' spec has these fields besides, and
/// the Deployment's path.
async fn judge(spec: Value) -> (Judge, String) {
    let judge = Judge::start().await;
    let path = judge.path("apps/v1", "deployments");
    let mut object = deployment("a");
    let fields = spec.as_object().unwrap().clone();
    let pods = object["spec"]["template"]["spec"].as_object_mut().unwrap();
    pods.extend(fields);
    judge.create(&path, &object).await;
    (judge, format!("{path}/a"))
}

/// Patches the pods' spec; gives the new one.
async fn patch(judge: &Judge, one: &str, spec: Value) -> Value {
    let patch = json!({"spec": {"template": {"spec": spec}}});
    let mut done = merged(judge, one, patch).await;
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

/// A judge with a ConfigMap that has a value at a pointer, and its path.
async fn map_with(pointer: &str, value: Value) -> (Judge, String) {
    let judge = Judge::start().await;
    let maps = judge.path("v1", "configmaps");
    let map = with(config_map("a"), &[(pointer, value)]);
    judge.create(&maps, &map).await;
    (judge, format!("{maps}/a"))
}

/// What is at a path when a patch is merged into it.
async fn merged(judge: &Judge, path: &str, patch: Value) -> Value {
    judge.patch(path, PatchType::Strategic, &patch).await.ok()
}

/// A patch that must be refused; with which code is not the same everywhere.
async fn refused(judge: &Judge, one: &str, patch: Value) -> Answer {
    let answer = judge.patch(one, PatchType::Strategic, &patch).await;
    assert!([400, 422, 500].contains(&answer.code), "{}", answer.text());
    answer
}
