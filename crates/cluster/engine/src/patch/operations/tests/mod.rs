//! Tests of the limits of JSON patches, and of the notations of their paths.
#![allow(clippy::unwrap_used)]
mod library;

use serde_json::json;

use super::*;
use crate::{nesting::NESTING, patch::apply_json};

fn patched(operations: Vec<Value>) -> Result<Value, Error> {
    apply_json(
        json!({"a": {"text": "0123456789"}}),
        &operations.into(),
        None,
    )
}

/// Expectations from a real API server, except where it panics.
#[test]
fn rule_16_negative_indices_count_from_the_end() {
    let one = |operation: Value| {
        let document = json!({"a": ["x", "y", ["z"]], "b": {"-1": 1}});
        apply_json(document, &json!([operation]), None).map(|patched| patched["a"].clone())
    };
    let to = |op: &str, path: &str| one(json!({"op": op, "path": path, "value": "v"}));
    for (op, path, expected) in [
        ("remove", "/a/-1", json!(["x", "y"])),
        ("remove", "/a/-3", json!(["y", ["z"]])),
        ("remove", "/a/01", json!(["x", ["z"]])),
        ("replace", "/a/-2", json!(["x", "v", ["z"]])),
        ("replace", "/a/-1/-1", json!(["x", "y", ["v"]])),
        ("add", "/a/-1", json!(["x", "y", ["z"], "v"])),
        ("add", "/a/-2", json!(["x", "y", "v", ["z"]])),
        ("add", "/a/-4", json!(["v", "x", "y", ["z"]])),
        ("add", "/a/+1", json!(["x", "v", "y", ["z"]])),
        ("add", "/b/-1", json!(["x", "y", ["z"]])),
        ("replace", "/b/none", json!(["x", "y", ["z"]])),
    ] {
        assert_eq!(to(op, path).unwrap(), expected, "{op} {path}");
    }
    for (op, path) in [
        ("remove", "/a/-4"),
        ("replace", "/a/-4"),
        ("add", "/a/-5"),
        ("test", "/a/-9"),
    ] {
        assert_eq!(to(op, path).unwrap_err().status().code, 422, "{op} {path}");
    }
    assert!(one(json!({"op": "test", "path": "/a/-3", "value": "x"})).is_ok());
    let moved = |from, path| one(json!({"op": "move", "from": from, "path": path})).unwrap();
    assert_eq!(moved("/a/-3", "/a/-1"), json!(["y", ["z"], "x"]));
    assert_eq!(moved("/b/-1", "/a/-4"), json!([1, "x", "y", ["z"]]));
    let copied = one(json!({"op": "copy", "from": "/a/-2", "path": "/a/-1"}));
    assert_eq!(copied.unwrap(), json!(["x", "y", ["z"], "y"]));
}

#[test]
fn operations_are_read_as_by_kubernetes() {
    for (operations, expected) in [
        (
            json!([{"op": "add", "path": "/x"}]),
            json!({"s": "a", "x": null}),
        ),
        (json!([{"op": "replace", "path": "/s"}]), json!({"s": null})),
        (
            json!([{"op": "test", "path": "/x"}, {"op": "add", "path": "/y", "value": 1}]),
            json!({"s": "a", "y": 1}),
        ),
        (
            json!([{"op": "copy", "from": "/x", "path": "/y"}]),
            json!({"s": "a", "y": null}),
        ),
        (
            json!([{"op": "add", "path": "/a~b~2~", "value": 1}]),
            json!({"s": "a", "a~b~2~": 1}),
        ),
        (
            json!([{"op": "add", "path": "/a~1b~0", "value": 1}]),
            json!({"s": "a", "a/b~": 1}),
        ),
        (json!([{"op": "remove", "path": "ignored/s"}]), json!({})),
    ] {
        let patched = apply_json(json!({"s": "a"}), &operations, None);
        assert_eq!(patched.unwrap(), expected, "{operations}");
    }
    for operations in [
        json!([{"op": "test", "path": "/s"}]),
        json!([{"op": "move", "from": "/x", "path": "/y"}]),
        json!([{"op": "copy", "from": "/x/y", "path": "/y"}]),
        json!([{"op": "remove", "path": "/x"}]),
        json!([{"op": "remove", "path": "s"}]),
    ] {
        let refused = apply_json(json!({"s": "a"}), &operations, None);
        assert_eq!(refused.unwrap_err().status().code, 422, "{operations}");
    }
}

/// Ten thousand moves within a list are less work than the limit.
#[test]
fn many_operations_on_large_documents_are_permitted() {
    let list: Vec<Value> = (0..40_000).map(|n| json!({"n": n})).collect();
    for (from, path) in [("/a/-1", "/a/-2"), ("/a/0", "/a/39999"), ("/a/0", "/a/-1")] {
        let operation = json!({"op": "move", "from": from, "path": path});
        let patch = vec![operation; 10_000].into();
        let document = apply_json(json!({"a": list}), &patch, None).unwrap();
        assert_eq!(document["a"].as_array().unwrap().len(), 40_000);
    }
}

#[test]
fn the_total_work_of_a_patch_is_limited() {
    let document = json!({"a": vec![0; 700_000]});
    let operation = json!({"op": "move", "from": "/a/0", "path": "/a/-"});
    let patch = vec![operation; 10_000].into();
    let error = apply_json(document, &patch, None).unwrap_err();
    assert_eq!(error.status().code, 413, "{error:?}");
    // Moving between levels, which requires every depth to be computed.
    let document = json!({"x": {"y": 1}, "a": vec![0; 100_000]});
    let deep = |from: &str, path: &str| json!({"op": "move", "from": from, "path": path});
    let mut operations: Vec<_> = (2..90)
        .map(|n| json!({"op": "add", "path": "/x".repeat(n), "value": {}}))
        .collect();
    let bottom = format!("{}/a", "/x".repeat(89));
    for _ in 0..4000 {
        operations.push(deep("/a", &bottom));
        operations.push(deep(&bottom, "/a"));
    }
    let error = apply_json(document, &operations.into(), None).unwrap_err();
    assert_eq!(error.status().code, 413);
}

#[test]
fn rule_31_copies_cannot_grow_a_document_without_limit() {
    let double = |n: usize| json!({"op": "copy", "from": "/a", "path": format!("/a/b{n}")});
    assert!(patched((0..10).map(double).collect()).is_ok());
    let error = patched((0..60).map(double).collect()).unwrap_err();
    assert_eq!(error.status().code, 422, "{error:?}");
}

#[test]
fn rule_31_operations_cannot_exceed_the_depth_limit() {
    let add = |depth: usize| json!({"op": "add", "path": "/x".repeat(depth), "value": {}});
    assert!(patched((1..=NESTING).map(add).collect()).is_ok());
    let error = patched((1..=NESTING + 10).map(add).collect()).unwrap_err();
    assert_eq!(error.status().code, 400, "{error:?}");
    let mut operations: Vec<_> = (1..100).map(add).collect();
    operations.push(json!({"op": "add", "path": "/y", "value": {"z": {}}}));
    for op in ["copy", "move"] {
        let mut operations = operations.clone();
        operations.push(json!({"op": op, "from": "/x", "path": "/y/z"}));
        assert!(patched(operations.clone()).is_ok(), "{op}");
        operations.pop();
        operations.push(json!({"op": "copy", "from": "/x", "path": "/w"}));
        operations.push(json!({"op": op, "from": "/x", "path": format!("/w{}", "/x".repeat(90))}));
        let error = patched(operations).unwrap_err();
        assert_eq!(error.status().code, 400, "{op}: {error:?}");
    }
}
