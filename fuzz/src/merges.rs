//! Strategic merge patches: a line with a pod, a line with a patch. Long lists,
//! which are searched by an index, merge as short ones do.

use longshore_model::Gvk;
use longshore_schema::{registry, strategic};
use serde_json::{Value, json};

/// Items that no patch names, at the end of a list: more than short lists have.
const PADS: usize = 20;
const PAD: &str = "pad-";

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
    if text.contains(PAD) || !document.is_object() {
        return;
    }
    let pod = registry()
        .root(&Gvk::from_api_version("v1", "Pod"))
        .expect("pods have a type");
    let short = strategic::merge(pod, document.clone(), &patch);
    let long = strategic::merge(pod, padded(document), &patch).map(without_pads);
    assert_eq!(short.is_ok(), long.is_ok(), "{short:?} {long:?}");
    if let (Ok(short), Ok(long)) = (short, long) {
        assert_eq!(without_pads(short), long);
    }
}

/// The lists that merge by a key and as sets.
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
            list.extend((0..PADS).map(|n| match path {
                "/metadata/finalizers" => json!(format!("{PAD}{n}")),
                _ => {
                    let id = format!("{PAD}{n}");
                    json!({"name": id, "type": id})
                }
            }));
        }
    }
    document
}

fn without_pads(mut document: Value) -> Value {
    for path in LISTS {
        if let Some(Value::Array(list)) = document.pointer_mut(path) {
            list.retain(|item| {
                let id = [item, &item["name"], &item["type"]];
                !id.iter()
                    .any(|id| id.as_str().is_some_and(|id| id.starts_with(PAD)))
            });
        }
    }
    document
}
