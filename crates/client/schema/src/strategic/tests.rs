//! Tests of each directive and each kind of list.

#![allow(clippy::unwrap_used)]
use crate::registry;
use longshore_model::Gvk;
use proptest::{prelude::prop, prop_assert_eq, proptest, strategy::Strategy as _};
use serde_json::json;

use super::*;

fn pod(document: Value, patch: Value) -> Value {
    try_pod(document, &patch).unwrap()
}

fn try_pod(document: Value, patch: &Value) -> Result<Value> {
    let root = registry()
        .root(&Gvk::from_api_version("v1", "Pod"))
        .unwrap();
    merge(root, document, patch.as_object().unwrap())
}

fn containers(list: Value) -> Value {
    json!({"spec": {"containers": list}})
}

#[test]
fn containers_merge_by_name() {
    let merged = pod(
        containers(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}])),
        containers(json!([{"name": "b", "image": "2"}, {"name": "c"}])),
    );
    let expected = json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c"}]);
    assert_eq!(merged, containers(expected));
    let merged = pod(merged, containers(json!([{"name": "d"}, {"name": "b"}])));
    let names: Vec<_> = merged["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|container| container["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["d", "a", "b", "c"]);
}

/// Expectations from a real API server.
#[test]
fn rule_17_items_in_the_patch_precede_unknown_items() {
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    let once = pod(finalizers(json!(["a"])), finalizers(json!(["d"])));
    assert_eq!(once, finalizers(json!(["d", "a"])));
    let twice = pod(once, finalizers(json!(["x", "a"])));
    assert_eq!(twice, finalizers(json!(["x", "d", "a"])));
    let merged = pod(
        containers(json!([{"name": "a"}, {"name": "b"}])),
        containers(json!([{"name": "c"}])),
    );
    let expected = json!([{"name": "c"}, {"name": "a"}, {"name": "b"}]);
    assert_eq!(merged, containers(expected));
}

#[test]
fn command_and_tolerations_are_replaced() {
    let merged = pod(
        json!({"spec": {"tolerations": [{"key": "a"}], "containers": [{"name": "a", "command": ["x", "y"]}]}}),
        json!({"spec": {"tolerations": [{"key": "b"}], "containers": [{"name": "a", "command": ["z"]}]}}),
    );
    assert_eq!(merged["spec"]["tolerations"], json!([{"key": "b"}]));
    assert_eq!(merged["spec"]["containers"][0]["command"], json!(["z"]));
}

#[test]
fn finalizers_merge_as_a_set_and_support_deletion() {
    let document = json!({"metadata": {"finalizers": ["a", "b"]}});
    let merged = pod(
        document.clone(),
        json!({"metadata": {"finalizers": ["b", "c"]}}),
    );
    assert_eq!(merged["metadata"]["finalizers"], json!(["a", "b", "c"]));
    let merged = pod(
        document,
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
    );
    assert_eq!(merged["metadata"]["finalizers"], json!(["b"]));
}

#[test]
fn conditions_merge_by_type() {
    let merged = pod(
        json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
        json!({"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "X"}]}}),
    );
    assert_eq!(
        merged["status"]["conditions"],
        json!([{"type": "Ready", "status": "True"}, {"type": "X"}])
    );
}

#[test]
fn patch_delete_removes_an_item_or_an_object() {
    let merged = pod(
        containers(json!([{"name": "a"}, {"name": "b"}])),
        containers(json!([{"name": "a", "$patch": "delete"}, {"name": "z", "$patch": "delete"}])),
    );
    assert_eq!(merged, containers(json!([{"name": "b"}])));
    let merged = pod(
        json!({"metadata": {"labels": {"a": "1"}}}),
        json!({"metadata": {"labels": {"$patch": "delete"}}}),
    );
    assert_eq!(merged, json!({"metadata": {"labels": {}}}));
}

#[test]
fn patch_replace_replaces_the_whole_value() {
    let merged = pod(
        containers(json!([{"name": "a"}, {"name": "b"}])),
        containers(json!([{"$patch": "replace"}, {"name": "c"}])),
    );
    assert_eq!(merged, containers(json!([{"name": "c"}])));
    let merged = pod(
        json!({"metadata": {"labels": {"a": "1"}}}),
        json!({"metadata": {"labels": {"$patch": "replace", "b": "2"}}}),
    );
    assert_eq!(merged, json!({"metadata": {"labels": {"b": "2"}}}));
}

#[test]
fn set_element_order_keeps_the_position_of_other_items() {
    let merged = pod(
        containers(json!([{"name": "a"}, {"name": "server"}, {"name": "b"}])),
        json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}, {"name": "c"}],
            "containers": [{"name": "c"}]}}),
    );
    let names: Vec<_> = merged["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["server", "b", "a", "c"]);
    let merged = pod(
        containers(json!([{"name": "a"}, {"name": "server"}])),
        json!({"spec": {"$setElementOrder/containers": [{"name": "a"}, {"name": "new"}],
            "containers": [{"name": "new"}]}}),
    );
    assert_eq!(
        merged,
        containers(json!([{"name": "a"}, {"name": "new"}, {"name": "server"}]))
    );
    let patch = json!({"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "c"}]}});
    assert!(try_pod(containers(json!([])), &patch).is_err());
}

/// Expectations from a real API server.
#[test]
fn rule_17_an_order_requires_a_list_in_the_type() {
    for (patch, problem) in [
        (
            json!({"metadata": {"$setElementOrder/nothing": []}}),
            "unable to find api field in struct ObjectMeta for the json field \"nothing\"",
        ),
        (
            json!({"metadata": {"$setElementOrder/labels": []}}),
            "expected slice or array type, but got: struct",
        ),
        (
            json!({"metadata": {"$setElementOrder/name": []}}),
            "expected a []interface {}, but received a string",
        ),
        (
            json!({"metadata": {"labels": {"$setElementOrder/a": []}}}),
            "merging an object in json but data type is not struct, instead is: map",
        ),
    ] {
        let document = json!({"metadata": {"name": "a"}});
        let invalid = try_pod(document, &patch).unwrap_err().to_string();
        assert_eq!(invalid, problem);
    }
    // Fields of unknown type are not checked.
    let patch = json!({"nothing": {"$setElementOrder/labels": []}});
    assert!(try_pod(json!({}), &patch).is_ok());
}

#[test]
fn rule_17_deleting_from_a_missing_list_changes_nothing() {
    for values in [json!(["a"]), json!("a")] {
        let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": values}});
        assert_eq!(pod(json!({"metadata": {}}), patch), json!({"metadata": {}}));
    }
}

#[test]
fn retain_keys_drops_the_other_fields() {
    let merged = pod(
        json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}),
        json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}}),
    );
    assert_eq!(
        merged["spec"]["volumes"],
        json!([{"name": "v", "hostPath": {"path": "/"}}])
    );
}

#[test]
fn malformed_patches_are_rejected() {
    for patch in [
        containers(json!([{"image": "x"}])),
        containers(json!(["x"])),
        json!({"metadata": {"$deleteFromPrimitiveList": []}}),
        json!({"metadata": {"$setElementOrder": []}}),
        json!({"metadata": {"$setElementOrder/nothing": []}}),
        json!({"metadata": {"$setElementOrder/labels": []}}),
        json!({"metadata": {"labels": {"$setElementOrder/a": []}}}),
        containers(json!([{"name": "a", "$patch": "jump"}])),
        json!({"metadata": {"$patch": 1}}),
        json!({"metadata": {"$setElementOrder/finalizers": "a"}}),
        json!({"metadata": {"$retainKeys": "a"}}),
    ] {
        assert!(try_pod(containers(json!([])), &patch).is_err(), "{patch}");
    }
}

fn named(range: &'static str) -> impl proptest::strategy::Strategy<Value = Value> {
    prop::collection::btree_map(range, "[1-3]", 0..5).prop_map(|map| {
        containers(
            map.into_iter()
                .map(|(name, image)| json!({"name": name, "image": image}))
                .collect(),
        )
    })
}

proptest! {
    #[test]
    fn applying_a_patch_is_idempotent(document in named("[a-e]"), patch in named("[a-g]")) {
        let once = pod(document, patch.clone());
        prop_assert_eq!(pod(once.clone(), patch), once);
    }

    #[test]
    fn every_name_occurs_exactly_once(document in named("[a-e]"), patch in named("[a-g]")) {
        let merged = pod(document.clone(), patch.clone());
        let names = |value: &Value| -> Vec<String> {
            value["spec"]["containers"].as_array().unwrap().iter()
                .map(|c| c["name"].as_str().unwrap().to_owned()).collect()
        };
        let mut expected = [names(&document), names(&patch)].concat();
        expected.sort();
        expected.dedup();
        let mut found = names(&merged);
        found.sort();
        prop_assert_eq!(found, expected);
    }
}

/// A search of the whole list for each item would take at least `MANY * MANY / 4`
/// steps.
#[test]
fn the_number_of_steps_of_a_merge_is_linear_in_the_length_of_its_lists() {
    const MANY: usize = 2000;
    let begin = super::positions::STEPS.get();
    let condition = |n: usize, status: &str| json!({"type": format!("t{n}"), "status": status});
    let conditions = |status: &str, range: std::ops::Range<usize>| -> Value {
        let list: Vec<_> = range.map(|n| condition(n, status)).collect();
        json!({"status": {"conditions": list}})
    };
    let merged = pod(
        conditions("False", 0..MANY),
        conditions("True", MANY / 2..MANY * 3 / 2),
    );
    assert_eq!(
        merged["status"]["conditions"].as_array().unwrap().len(),
        MANY * 3 / 2
    );
    let removal = |n: usize| json!({"type": format!("t{n}"), "$patch": "delete"});
    let removals: Vec<_> = (0..MANY).rev().map(removal).collect();
    let order: Vec<_> = (0..MANY * 3 / 2)
        .map(|n| json!({"type": format!("t{n}")}))
        .collect();
    let merged = pod(
        merged,
        json!({"status":
        {"conditions": removals, "$setElementOrder/conditions": order}}),
    );
    assert_eq!(
        merged["status"]["conditions"].as_array().unwrap().len(),
        MANY / 2
    );
    let duplicates: Vec<_> = (0..MANY).map(|_| condition(1, "True")).collect();
    let merged = pod(
        json!({"status": {"conditions": duplicates}}),
        conditions("False", 0..MANY),
    );
    assert_eq!(merged["status"]["conditions"][0]["status"], "False");

    let names: Vec<_> = (0..MANY).map(|n| format!("example.com/{n}")).collect();
    let finalizers = json!({"metadata": {"finalizers": names}});
    let merged = pod(finalizers.clone(), finalizers.clone());
    assert_eq!(merged, finalizers);
    let deleted = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": names}});
    assert_eq!(pod(merged, deleted)["metadata"]["finalizers"], json!([]));
    let steps = super::positions::STEPS.get() - begin;
    assert!((MANY..50 * MANY).contains(&steps), "{steps} steps");
}
