//! Sets of primitive values, and the order of merged lists.

use serde_json::json;

use super::{container, map_with, merged, patch, test, values};

#[tokio::test]
async fn rule_17_items_are_deleted_from_lists_of_primitives() {
    let finalizers = json!(["example.com/a", "example.com/b", "example.com/c"]);
    let (test, one) = map_with("/metadata/finalizers", finalizers).await;
    let patch = json!({"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["example.com/b", "example.com/none"],
    }});
    let done = merged(&test, &one, patch).await;
    assert_eq!(
        done["metadata"]["finalizers"],
        json!(["example.com/a", "example.com/c"])
    );
}

#[tokio::test]
async fn rule_17_finalizers_merge_as_a_set() {
    let finalizers = json!(["example.com/a"]);
    let (test, one) = map_with("/metadata/finalizers", finalizers).await;
    let patch = json!({"metadata": {"finalizers": ["example.com/b", "example.com/a"]}});
    let done = merged(&test, &one, patch).await;
    let mut both = done["metadata"]["finalizers"].as_array().unwrap().clone();
    both.sort_by_key(ToString::to_string);
    assert_eq!(both, [json!("example.com/a"), json!("example.com/b")]);
}

#[tokio::test]
async fn rule_17_set_element_order_orders_merged_lists() {
    let spec = json!({"containers": [
        container("a", json!({})), container("b", json!({})), container("c", json!({})),
    ]});
    let (test, one) = test(spec).await;
    let done = patch(&test, &one, json!({
        "$setElementOrder/containers": [{"name": "c"}, {"name": "d"}, {"name": "a"}, {"name": "b"}],
        "containers": [{"name": "d", "image": "i"}],
    }))
    .await;
    assert_eq!(values(&done["containers"], "name"), ["c", "d", "a", "b"]);
    // Items that the order does not name stay after their predecessors.
    let done = patch(
        &test,
        &one,
        json!({
            "$setElementOrder/containers": [{"name": "b"}, {"name": "c"}],
            "containers": [{"name": "b", "image": "j"}],
        }),
    )
    .await;
    let names = values(&done["containers"], "name");
    let place = |name: &str| names.iter().position(|other| *other == name).unwrap();
    assert!(place("b") < place("c"), "{names:?}");
    assert_eq!(names.len(), 4);
    // The same for lists of primitive values.
    let finalizers = json!(["example.com/a", "example.com/b"]);
    let (test, one) = map_with("/metadata/finalizers", finalizers).await;
    let patch = json!({"metadata": {
        "$setElementOrder/finalizers": ["example.com/c", "example.com/b", "example.com/a"],
        "finalizers": ["example.com/c"],
    }});
    let done = merged(&test, &one, patch).await;
    let expected = json!(["example.com/c", "example.com/b", "example.com/a"]);
    assert_eq!(done["metadata"]["finalizers"], expected);
}

#[tokio::test]
async fn rule_17_new_items_without_an_order_precede_their_successors() {
    let spec = json!({"containers": [
        container("a", json!({})), container("b", json!({})), container("c", json!({})),
    ]});
    let (test, one) = test(spec).await;
    for (names, expected) in [
        (&["x"][..], &["x", "a", "b", "c"][..]),
        (&["b", "y"], &["x", "a", "b", "y", "c"]),
        (&["z", "a"], &["z", "x", "a", "b", "y", "c"]),
    ] {
        let items: Vec<_> = names
            .iter()
            .map(|name| container(name, json!({})))
            .collect();
        let done = patch(&test, &one, json!({"containers": items})).await;
        assert_eq!(values(&done["containers"], "name"), expected);
    }
}
