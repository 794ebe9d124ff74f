//! Strategic merge patches: a line with a pod, a line with a patch. Long lists, for which
//! the merge uses an index, merge like short lists.

use longshore_model::Gvk;
use longshore_schema::{registry, strategic};
use serde_json::{Value, json};

/// The number of items that are appended to a list. It makes the list long enough for the
/// index. Patches do not contain these items.
const PADDING: usize = 20;
/// The prefix of the names of the appended items.
const PREFIX: &str = "pad-";

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Some((document, patch)) = text.split_once('\n') else {
        return;
    };
    let (Ok(document), Ok(Value::Object(patch))) = (
        serde_json::from_str::<Value>(document),
        serde_json::from_str::<Value>(patch),
    ) else {
        return;
    };
    if text.contains(PREFIX) || !document.is_object() {
        return;
    }
    let pod = registry()
        .root(&Gvk::from_api_version("v1", "Pod"))
        .expect("pods have a type");
    let short = strategic::merge(pod, document.clone(), &patch);
    let long = strategic::merge(pod, padded(document), &patch).map(without_padding);
    assert_eq!(short.is_ok(), long.is_ok(), "{short:?} {long:?}");
    if let (Ok(short), Ok(long)) = (short, long) {
        assert_eq!(without_padding(short), long);
    }
}

/// Lists that merge by a key, and a list that merges as a set.
const LISTS: [&str; 3] = [
    "/spec/containers",
    "/status/conditions",
    "/metadata/finalizers",
];

fn padded(mut document: Value) -> Value {
    for path in LISTS {
        if let Some(Value::Array(list)) = document.pointer_mut(path)
            && !list.is_empty()
        {
            list.extend((0..PADDING).map(|n| match path {
                "/metadata/finalizers" => json!(format!("{PREFIX}{n}")),
                _ => {
                    let id = format!("{PREFIX}{n}");
                    json!({"name": id, "type": id})
                }
            }));
        }
    }
    document
}

fn without_padding(mut document: Value) -> Value {
    for path in LISTS {
        if let Some(Value::Array(list)) = document.pointer_mut(path) {
            list.retain(|item| {
                let id = [item, &item["name"], &item["type"]];
                !id.iter()
                    .any(|id| id.as_str().is_some_and(|id| id.starts_with(PREFIX)))
            });
        }
    }
    document
}
