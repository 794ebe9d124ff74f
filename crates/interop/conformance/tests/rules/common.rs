//! Helpers for the tests of the rules.

use serde_json::{Value, json};

/// The resource version of an object.
#[track_caller]
pub(crate) fn version(object: &Value) -> String {
    let version = object["metadata"]["resourceVersion"].as_str();
    version
        .unwrap_or_else(|| panic!("no resourceVersion: {object}"))
        .to_owned()
}

/// The resource version of an object as a number.
#[track_caller]
pub(crate) fn number(object: &Value) -> u64 {
    let version = version(object);
    version.parse().unwrap_or_else(|_| panic!("{version:?}"))
}

/// The names of objects.
pub(crate) fn names<'a>(items: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
    items
        .into_iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The names in a list.
#[track_caller]
pub(crate) fn items(list: &Value) -> Vec<String> {
    let items = list["items"].as_array();
    names(items.unwrap_or_else(|| panic!("not a list: {list}")))
}

/// A ConfigMap of this name.
pub(crate) fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name}, "data": {"key": "value"},
    })
}

/// A pod with this name and one container, bound to no node.
pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "image"}]},
    })
}

/// Sets values at JSON pointers in an object and creates missing parents.
pub(crate) fn with(mut object: Value, changes: &[(&str, Value)]) -> Value {
    for (pointer, value) in changes {
        let mut place = &mut object;
        for word in pointer.split('/').skip(1) {
            let word = word.replace("~1", "/").replace("~0", "~");
            place = match word.parse::<usize>() {
                Ok(index) if place.is_array() => &mut place[index],
                _ => &mut place[word],
            };
        }
        *place = value.clone();
    }
    object
}

/// A Deployment of this name.
pub(crate) fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "image"}]},
            },
        },
    })
}
