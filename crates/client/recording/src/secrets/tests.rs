//! Tests of the redaction of objects.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;

fn redacted(body: Value, sensitivity: Sensitivity) -> Value {
    let mut json = Json::from(body);
    redact(&mut json, sensitivity);
    serde_json::to_value(&json).unwrap()
}

#[test]
fn the_data_of_a_secret_is_replaced_and_its_names_stay() {
    let secret = json!({
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {"name": "s", "annotations": {
            LAST_APPLIED: "{\"stringData\":{\"password\":\"hunter2\"}}",
            "other": "kept",
        }},
        "data": {"password": "aHVudGVyMg=="},
        "stringData": {"user": "me", "removed": null},
        "type": "Opaque",
    });
    let expected = json!({
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {"name": "s", "annotations": {LAST_APPLIED: MARKER, "other": "kept"}},
        "data": {"password": MARKER},
        "stringData": {"user": MARKER, "removed": null},
        "type": "Opaque",
    });
    // By its kind, wherever it is.
    assert_eq!(redacted(secret.clone(), Sensitivity::None), expected);
    let list = json!({"kind": "List", "items": [secret.clone()]});
    assert_eq!(
        redacted(list, Sensitivity::None),
        json!({"kind": "List", "items": [expected.clone()]})
    );
    let event = json!({"type": "ADDED", "object": secret.clone()});
    assert_eq!(
        redacted(event, Sensitivity::Secret),
        json!({"type": "ADDED", "object": expected})
    );
}

#[test]
fn copies_of_a_secret_in_annotations_are_replaced() {
    let metadata = json!({"annotations": {
        LAST_APPLIED: "{\"kind\":\"Secret\",\"stringData\":{\"password\":\"hunter2\"}}\n",
    }});
    let hidden = json!({"annotations": {LAST_APPLIED: MARKER}});
    let table = |metadata: &Value| {
        json!({"kind": "Table", "rows": [{"cells": ["s", "Opaque"], "object": {
            "kind": "PartialObjectMetadata", "metadata": metadata,
        }}]})
    };
    for sensitivity in [Sensitivity::Secret, Sensitivity::None] {
        assert_eq!(redacted(table(&metadata), sensitivity), table(&hidden));
    }
    // Other objects keep the annotation.
    let other = json!({"metadata": {"annotations": {LAST_APPLIED: "{\"kind\":\"ConfigMap\"}"}}});
    assert_eq!(redacted(other.clone(), Sensitivity::None), other);
    let event = json!({"type": "ADDED", "object": table(&metadata)});
    let event = redacted(event, Sensitivity::Secret);
    assert_eq!(event["object"], table(&hidden));
}

#[test]
fn objects_without_a_kind_are_redacted_by_the_path_of_the_request() {
    let data = json!({"data": {"a": "c2VjcmV0"}});
    let hidden = json!({"data": {"a": MARKER}});
    assert_eq!(redacted(data.clone(), Sensitivity::Secret), hidden);
    let list = json!({"kind": "SecretList", "items": [data.clone()]});
    let hidden_list = json!({"kind": "SecretList", "items": [hidden]});
    assert_eq!(redacted(list.clone(), Sensitivity::Secret), hidden_list);
    assert_eq!(redacted(list, Sensitivity::None), hidden_list);
    // As in a ConfigMap.
    assert_eq!(redacted(data.clone(), Sensitivity::None), data);
    let patch = json!([
        {"op": "replace", "path": "/data/a", "value": "c2VjcmV0"},
        {"op": "add", "path": "/data", "value": {"b": "c2VjcmV0"}},
        {"op": "remove", "path": "/data/c"},
    ]);
    assert_eq!(
        redacted(patch, Sensitivity::Secret),
        json!([
            {"op": "replace", "path": "/data/a", "value": MARKER},
            {"op": "add", "path": "/data", "value": {"b": MARKER}},
            {"op": "remove", "path": "/data/c"},
        ])
    );
}

#[test]
fn issued_and_reviewed_tokens_are_replaced() {
    let request = json!({
        "kind": "TokenRequest",
        "spec": {"audiences": ["a"]},
        "status": {"token": "opaque", "expirationTimestamp": "2030-01-01T00:00:00Z"},
    });
    let hidden = redacted(request, Sensitivity::None);
    assert_eq!(hidden["status"]["token"], MARKER);
    assert_eq!(hidden["spec"]["audiences"][0], "a");
    let review = json!({"spec": {"token": "opaque"}});
    assert_eq!(
        redacted(review, Sensitivity::Token),
        json!({"spec": {"token": MARKER}})
    );
}

#[test]
fn tokens_in_texts_are_replaced_but_names_are_not() {
    let body = json!({
        "kind": "Event",
        "metadata": {"name": "worker.17f3c2d1a4b5c6d7"},
        "message": "joined with abcdef.0123456789abcdef",
        "uid": "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2ln",
    });
    assert_eq!(
        redacted(body, Sensitivity::None),
        json!({
            "kind": "Event",
            "metadata": {"name": "worker.17f3c2d1a4b5c6d7"},
            "message": "joined with REDACTED",
            "uid": "REDACTED",
        })
    );
}

mod noise {
    use proptest::prelude::*;

    use super::*;
    use crate::content::Content;

    const PASSWORD: &str = "hunter2-Zx9";

    /// Any JSON, with the names of fields that matter.
    fn any_json() -> impl Strategy<Value = Value> {
        let name = prop::sample::select(vec!["kind", "data", "items", "metadata", "object", "a"]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            prop::sample::select(vec!["Secret", "Pod", "{", "x"]).prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            let field = (name.clone(), inner.clone());
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(Value::from),
                prop::collection::vec(field, 0..4).prop_map(|fields| {
                    let fields = fields.into_iter();
                    fields
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect()
                }),
            ]
        })
    }

    /// A Secret with a password in all the places where it can be.
    fn secret() -> Value {
        let copy = json!({"kind": "Secret", "stringData": {"a": PASSWORD}}).to_string();
        json!({
            "kind": "Secret",
            "metadata": {"annotations": {LAST_APPLIED: copy}},
            "data": {"a": PASSWORD, "b": [PASSWORD]},
            "stringData": {"a": PASSWORD},
        })
    }

    proptest! {
        #[test]
        fn a_password_of_a_secret_is_never_written(
            around in any_json(),
            field in prop::sample::select(vec!["items", "object", "a", "data"]),
            cut in any::<prop::sample::Index>(),
            path_says_so: bool,
        ) {
            let mut body = json!({"around": around});
            body[field] = json!([{"object": secret()}, secret()]);
            let sensitivity = match path_says_so {
                true => Sensitivity::Secret,
                false => Sensitivity::None,
            };
            let text = body.to_string();
            let content = Content::of(text.as_bytes(), "application/json", sensitivity);
            let written = serde_json::to_string(&Content::into_fields(content)).unwrap();
            prop_assert!(!written.contains(PASSWORD), "{written}");

            // A truncated body is not JSON.
            let text = &text.as_bytes()[..cut.index(text.len())];
            let content = Content::of(text, "application/json", Sensitivity::Secret);
            let written = serde_json::to_string(&Content::into_fields(content)).unwrap();
            prop_assert!(!written.contains(PASSWORD), "{written}");
        }
    }
}
