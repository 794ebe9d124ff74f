//! Objects that are embedded in custom objects: their types and metadata are decoded and validated
//! like the types and metadata of other objects. The expectations are from the code of Kubernetes
//! 1.37.

use serde_json::{Value, json};

use super::{DEFINITIONS, create, definition, get};
use crate::support::{Api, api, status};

/// A definition with objects in a field, in a list and in a map.
async fn boxes() -> Api {
    let inner = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    let api = api();
    let crd = definition(
        json!([{"name": "v1", "served": true, "storage": true, "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {
                "one": inner,
                "list": {"type": "array", "items": inner},
                "map": {"type": "object", "additionalProperties": inner},
            }},
        }}]),
    );
    api.create(DEFINITIONS, crd).await.unwrap();
    api
}

fn object(metadata: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "X", "metadata": metadata, "more": {"a": 1}})
}

#[tokio::test]
async fn metadata_of_embedded_objects_is_decoded() {
    let api = boxes().await;
    let given = json!({
        "name": "", "namespace": "n", "labels": {"a": null, "b": "c"}, "annotations": {},
        "finalizers": [], "generation": 0, "resourceVersion": "12", "selfLink": "/x",
        "creationTimestamp": null, "deletionTimestamp": "2026-01-02T05:04:05.678+02:00",
        "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u", "other": 1}],
        "managedFields": [{"manager": "m", "operation": "Update", "fieldsType": "FieldsV1"}],
        "other": {"deep": true},
    });
    let decoded = json!({
        "namespace": "n", "labels": {"a": "", "b": "c"}, "resourceVersion": "12", "selfLink": "/x",
        "deletionTimestamp": "2026-01-02T03:04:05Z",
        "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u"}],
        "managedFields": [{"manager": "m", "operation": "Update", "fieldsType": "FieldsV1"}],
    });
    let box_ = json!({"metadata": {"name": "a"}, "one": object(given.clone()),
        "list": [object(given.clone())], "map": {"k": object(given), "null": object(Value::Null)}});
    let written = create(&api, "v1", box_).await.unwrap();
    let expected: Vec<String> = ["list[0]", "map[k]", "one"]
        .iter()
        .flat_map(|path| {
            ["other", "ownerReferences[0].other"]
                .map(|field| format!("unknown field \"{path}.metadata.{field}\""))
        })
        .collect();
    let mut warnings = written.warnings;
    warnings.sort();
    assert_eq!(warnings, expected);
    let stored = get(&api, "v1", "a").unwrap();
    for found in [&stored["one"], &stored["list"][0], &stored["map"]["k"]] {
        assert_eq!(*found, object(decoded.clone()));
    }
    assert_eq!(stored["map"]["null"], object(json!({})));
}

#[tokio::test]
async fn embedded_objects_are_validated() {
    let api = boxes().await;
    let refused = async |inner: Value| {
        let box_ = json!({"metadata": {"name": "a"}, "list": [inner]});
        status(create(&api, "v1", box_).await)
    };
    for (metadata, problem) in [
        (
            json!({"labels": {"a": 1}}),
            r#"list[0].metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"#,
        ),
        (
            json!([]),
            "list[0].metadata: Invalid value: []: json: cannot unmarshal array into Go value of type v1.ObjectMeta",
        ),
        (
            json!({"creationTimestamp": "now"}),
            r#"list[0].metadata: Invalid value: {"creationTimestamp":"now"}: parsing time "now" as"#,
        ),
    ] {
        let answer = refused(object(metadata.clone())).await;
        assert_eq!(answer.0, 400, "{answer:?}");
        assert!(answer.2.contains(problem), "{metadata}: {answer:?}");
    }
    for (metadata, problem) in [
        (
            json!({"name": ".."}),
            "list[0].metadata.name: Invalid value: \"..\": may not be '..'",
        ),
        (
            json!({"name": "a/b"}),
            "list[0].metadata.name: Invalid value: \"a/b\": may not contain '/'",
        ),
        (
            json!({"generateName": "a%"}),
            "list[0].metadata.generateName: Invalid value: \"a%\": may not contain '%'",
        ),
        (
            json!({"namespace": "$"}),
            "list[0].metadata.namespace: Invalid value: \"$\": a lowercase RFC 1123 label",
        ),
        (
            json!({"generation": -1}),
            "list[0].metadata.generation: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            json!({"labels": {"a b": "c"}}),
            "list[0].metadata.labels: Invalid value: \"a b\": name part",
        ),
        (
            json!({"labels": {"a": "b c"}}),
            "list[0].metadata.labels: Invalid value: \"b c\": a valid label",
        ),
        (
            json!({"annotations": {"#": "c"}}),
            "list[0].metadata.annotations: Invalid value: \"#\": name part",
        ),
        (
            json!({"finalizers": ["a b"]}),
            "list[0].metadata.finalizers: Invalid value: \"a b\": name part",
        ),
        (
            json!({"finalizers": ["orphan", "foregroundDeletion"]}),
            "cannot be both set",
        ),
        (
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o"}]}),
            "list[0].metadata.ownerReferences[0].uid: Required value: must not be empty",
        ),
        (
            json!({"managedFields": [{"operation": "Patch"}]}),
            "list[0].metadata.managedFields[0].operation: Unsupported value: \"Patch\": supported values: \"Apply\", \"Update\"",
        ),
        (
            json!({"managedFields": [{"operation": "Apply", "fieldsType": "V2"}]}),
            "list[0].metadata.managedFields[0].fieldsType: Invalid value: \"V2\": must be `FieldsV1`",
        ),
    ] {
        let answer = refused(object(metadata.clone())).await;
        assert_eq!(answer.0, 422, "{answer:?}");
        assert!(answer.2.contains(problem), "{metadata}: {answer:?}");
    }
    for (inner, code, problem) in [
        (json!({}), 422, "list[0].apiVersion: Required value"),
        (
            json!({"apiVersion": "v1"}),
            422,
            "list[0].kind: Required value",
        ),
        (
            json!({"apiVersion": "", "kind": "X"}),
            422,
            "list[0].apiVersion: Invalid value: \"\": must not be empty",
        ),
        (
            json!({"apiVersion": "a/b/c", "kind": "X"}),
            422,
            "list[0].apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
        ),
        (
            json!({"apiVersion": "v1", "kind": "a.b"}),
            422,
            "list[0].kind: Invalid value: \"a.b\": may have mixed case, but should otherwise match: a DNS-1035 label",
        ),
        (
            json!({"apiVersion": 1, "kind": "X"}),
            400,
            "list[0].apiVersion: Invalid value: 1: must be a string",
        ),
    ] {
        let answer = refused(inner.clone()).await;
        assert_eq!(answer.0, code, "{answer:?}");
        assert!(answer.2.contains(problem), "{inner}: {answer:?}");
    }
    // Names and finalizers of unknown kinds have no further rules.
    let loose = object(json!({"name": "Any Name", "finalizers": ["none"]}));
    let box_ = json!({"metadata": {"name": "a"}, "list": [loose]});
    create(&api, "v1", box_).await.unwrap();
}

/// A definition that declares embedded objects after some were stored.
#[tokio::test]
async fn stored_objects_are_read_with_valid_metadata() {
    let with = |one: Value| {
        json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"one": one}}}}])
    };
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let api = api();
    let crd = definition(with(any.clone()));
    api.create(DEFINITIONS, crd).await.unwrap();
    let metadata = json!({"labels": {"a": 1}, "name": "n", "other": 1});
    let inner = json!({"apiVersion": 1, "kind": "X", "metadata": metadata});
    let box_ = json!({"metadata": {"name": "a"}, "one": inner});
    create(&api, "v1", box_).await.unwrap();
    let mut embedded = any;
    embedded["x-kubernetes-embedded-resource"] = true.into();
    let change = json!({"spec": {"versions": with(embedded)}});
    api.merge(DEFINITIONS, "shoes.example.com", change)
        .await
        .unwrap();
    let stored = get(&api, "v1", "a").unwrap();
    assert_eq!(
        stored["one"],
        json!({"kind": "X", "metadata": {"name": "n"}})
    );
}
