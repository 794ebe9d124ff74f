//! JSON merge patch (RFC 7386): objects are merged, `null` deletes, other
//! values replace.

use serde_json::{Map, Value};

/// Merges a patch into a document.
pub(super) fn merge(document: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *document = patch.clone();
        return;
    };
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    let Value::Object(document) = document else {
        return;
    };
    for (name, value) in patch {
        if value.is_null() {
            document.remove(name);
        } else {
            merge(document.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn merged(mut document: Value, patch: &Value) -> Value {
        merge(&mut document, patch);
        document
    }

    /// The examples of RFC 7386, appendix A.
    #[test]
    fn the_examples_of_rfc_7386_hold() {
        for (document, patch, result) in [
            (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
            (json!({"a":"b"}), json!({"a":null}), json!({})),
            (
                json!({"a":"b","b":"c"}),
                json!({"a":null}),
                json!({"b":"c"}),
            ),
            (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"c"}), json!({"a":["b"]}), json!({"a":["b"]})),
            (
                json!({"a":{"b":"c"}}),
                json!({"a":{"b":"d","c":null}}),
                json!({"a":{"b":"d"}}),
            ),
            (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a":"b"}), json!(["c"]), json!(["c"])),
            (json!({"a":"foo"}), json!(null), json!(null)),
            (json!({"a":"foo"}), json!("bar"), json!("bar")),
            (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
            (json!([1, 2]), json!({"a":"b","c":null}), json!({"a":"b"})),
            (
                json!({}),
                json!({"a":{"bb":{"ccc":null}}}),
                json!({"a":{"bb":{}}}),
            ),
        ] {
            assert_eq!(merged(document, &patch), result);
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i8>().prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| map.into_iter().collect::<Map<_, _>>().into()),
            ]
        })
    }

    fn any_object() -> impl Strategy<Value = Value> {
        prop::collection::btree_map("[a-c]", any_json(), 0..4)
            .prop_map(|map| map.into_iter().collect::<Map<_, _>>().into())
    }

    proptest! {
        #[test]
        fn an_empty_patch_changes_no_object(document in any_object()) {
            prop_assert_eq!(merged(document.clone(), &json!({})), document);
        }

        #[test]
        fn applying_a_patch_is_idempotent(document in any_json(), patch in any_json()) {
            let once = merged(document, &patch);
            prop_assert_eq!(merged(once.clone(), &patch), once);
        }

        #[test]
        fn merging_agrees_with_another_implementation(document in any_json(), patch in any_json()) {
            let mut other = document.clone();
            json_patch::merge(&mut other, &patch);
            prop_assert_eq!(merged(document, &patch), other);
        }
    }
}
