//! Custom objects: pruning, defaults, validation, status, versions, selectors.

use longshore_engine::{
    Create, FieldValidation, ListRequest, Subresource, WatchRequest, WatchStart, WriteOptions,
};
use longshore_model::PatchKind;
use serde_json::json;

use super::{DEFINITIONS, create, definition, get, patch, put, shoe, shoe_kind, shoes, version};
use crate::support::{api, available_events, status};

#[tokio::test]
async fn rule_30_objects_are_pruned_defaulted_and_validated() {
    let api = shoes().await;
    let object = json!({"metadata": {"name": "a"}, "spec": {"size": 40, "laces": 2}, "status": {"replicas": 1}});
    let written = create(&api, "v1", object).await.unwrap();
    assert_eq!(written.warnings, [r#"unknown field "spec.laces""#]);
    let made = written.object.value();
    assert_eq!(made["spec"], json!({"size": 40, "colour": "red"}));
    assert_eq!(
        (&made["kind"], &made["apiVersion"]),
        (&json!("Shoe"), &json!("example.com/v1"))
    );
    // The kind has a status subresource: a create drops the status.
    assert_eq!(
        (made.get("status"), &made["metadata"]["generation"]),
        (None, &json!(1))
    );
    let (code, _, message) = status(
        create(
            &api,
            "v1",
            json!({"metadata": {"name": "b"}, "spec": {"size": "x"}}),
        )
        .await,
    );
    assert_eq!(code, 422);
    assert_eq!(
        message,
        r#"Shoe.example.com "b" is invalid: spec.size: Invalid value: "string": spec.size in body must be of type integer: "string""#
    );
    let strict = Create {
        kind: shoe_kind(&api, "v1"),
        namespace: Some("default".into()),
        object: json!({"metadata": {"name": "c"}, "spec": {"size": 40, "laces": 2}}),
        options: WriteOptions {
            field_validation: FieldValidation::Strict,
            ..WriteOptions::default()
        },
    };
    let (code, _, message) = status(api.0.create(strict).await);
    assert_eq!(code, 400);
    assert!(message.contains(r#"strict decoding error: unknown field "spec.laces""#));
}

#[tokio::test]
async fn rule_8_an_update_of_a_custom_object_requires_its_resource_version() {
    let api = shoes().await;
    create(&api, "v1", shoe("a")).await.unwrap();
    let (code, _, message) = status(put(&api, "a", Subresource::None, shoe("a")).await);
    assert_eq!(code, 422);
    assert_eq!(
        message,
        r#"shoes.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"#
    );
    let (code, ..) = status(
        patch(
            &api,
            "v1",
            Subresource::None,
            PatchKind::Strategic,
            json!({"spec": {"size": 2}}),
        )
        .await,
    );
    assert_eq!(code, 415);
}

#[tokio::test]
async fn rule_10_and_15_status_and_generation_of_custom_objects() {
    let api = shoes().await;
    create(&api, "v1", shoe("a")).await.unwrap();
    let merge = |part, body| patch(&api, "v1", part, PatchKind::Merge, body);
    let both = json!({"spec": {"size": 41}, "status": {"replicas": 2}});
    let main = merge(Subresource::None, both.clone())
        .await
        .unwrap()
        .value();
    assert_eq!(
        (main.get("status"), &main["metadata"]["generation"]),
        (None, &json!(2))
    );
    let both = json!({"spec": {"size": 42}, "status": {"replicas": 2}});
    let part = merge(Subresource::Status, both).await.unwrap().value();
    assert_eq!(
        (&part["spec"]["size"], &part["status"]["replicas"]),
        (&json!(41), &json!(2))
    );
    assert_eq!(part["metadata"]["generation"], 2);
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let labelled = merge(Subresource::None, labels).await.unwrap().value();
    assert_eq!(labelled["metadata"]["generation"], 2);
    let (code, _, message) =
        status(merge(Subresource::Status, json!({"status": {"replicas": "x"}})).await);
    assert_eq!(code, 422);
    assert!(
        message.contains("status.replicas in body must be of type integer"),
        "{message}"
    );
}

#[tokio::test]
async fn rule_30_versions_share_their_objects() {
    let api = api();
    let mut old = version("v1beta1", false);
    old["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["old"] =
        json!({"type": "string", "default": "yes"});
    let crd = definition(json!([version("v1", true), old]));
    api.create(DEFINITIONS, crd).await.unwrap();
    create(
        &api,
        "v1beta1",
        json!({"metadata": {"name": "a"}, "spec": {"size": 40, "old": "no"}}),
    )
    .await
    .unwrap();
    let new = get(&api, "v1", "a").unwrap();
    assert_eq!(
        (&new["apiVersion"], new["spec"].get("old")),
        (&json!("example.com/v1"), None)
    );
    let old = get(&api, "v1beta1", "a").unwrap();
    assert_eq!(
        (&old["apiVersion"], &old["spec"]["old"]),
        // A field that the storage version does not declare is not stored.
        (&json!("example.com/v1beta1"), &json!("yes"))
    );
    create(&api, "v1", shoe("b")).await.unwrap();
    // Reads also apply defaults.
    assert_eq!(get(&api, "v1beta1", "b").unwrap()["spec"]["old"], "yes");
    let kind = shoe_kind(&api, "v1beta1");
    let page = api.0.list(&ListRequest::of(kind.clone())).unwrap();
    assert!(
        page.items
            .iter()
            .all(|o| o.value()["apiVersion"] == "example.com/v1beta1")
    );
    let mut watch = api
        .0
        .watch(&WatchRequest::of(kind, WatchStart::Latest))
        .unwrap();
    patch(
        &api,
        "v1",
        Subresource::None,
        PatchKind::Merge,
        json!({"spec": {"size": 1}}),
    )
    .await
    .unwrap();
    assert_eq!(
        available_events(&mut watch),
        ["ADDED a", "ADDED b", "MODIFIED a"]
    );
}

#[tokio::test]
async fn rule_30_an_equal_status_is_written_once_in_another_storage_version() {
    let api = api();
    let versions = |stored: bool| json!([version("v1", stored), version("v2", !stored)]);
    let crd = definition(versions(true));
    api.create(DEFINITIONS, crd).await.unwrap();
    create(&api, "v1", shoe("a")).await.unwrap();
    let write = async || {
        let body = json!({"status": {"replicas": 1}});
        let part = Subresource::Status;
        let written = patch(&api, "v1", part, PatchKind::Merge, body).await;
        written.unwrap().revision()
    };
    let first = write().await;
    assert_eq!(write().await, first);
    let body = json!({"spec": {"versions": versions(false)}});
    let changed = api.merge(DEFINITIONS, "shoes.example.com", body).await;
    let again = write().await;
    assert!(again > changed.unwrap().revision());
    assert_eq!(write().await, again);
}

#[tokio::test]
async fn rule_30_a_write_without_changes_stores_an_object_in_the_new_storage_version() {
    let api = api();
    let versions = |is_v1_stored: bool| {
        let mut old = version("v1", is_v1_stored);
        old["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["old"] =
            json!({"type": "string"});
        json!([old, version("v2", !is_v1_stored)])
    };
    let crd = definition(versions(true));
    api.create(DEFINITIONS, crd).await.unwrap();
    for name in ["a", "b"] {
        let object = json!({"metadata": {"name": name}, "spec": {"size": 40, "old": "yes"}});
        create(&api, "v1", object).await.unwrap();
    }
    let body = json!({"spec": {"versions": versions(false)}});
    let changed = api.merge(DEFINITIONS, "shoes.example.com", body).await;
    let changed = changed.unwrap().revision();

    let patch = async || {
        let written = patch(&api, "v1", Subresource::None, PatchKind::Merge, json!({})).await;
        written.unwrap().revision()
    };
    let replace = async || {
        let object = get(&api, "v1", "b").unwrap();
        let written = put(&api, "b", Subresource::None, object).await;
        written.unwrap().revision()
    };
    let (patched, replaced) = (patch().await, replace().await);
    assert!(changed < patched && patched < replaced);
    for name in ["a", "b"] {
        let object = get(&api, "v1", name).unwrap();
        // A field that the storage version does not declare is not stored.
        assert_eq!(
            object["spec"],
            json!({"size": 40, "colour": "red"}),
            "{name}"
        );
    }
    assert_eq!((patch().await, replace().await), (patched, replaced));
}

#[tokio::test]
async fn rule_19_selectable_fields() {
    let api = shoes().await;
    create(&api, "v1", shoe("a")).await.unwrap();
    create(
        &api,
        "v1",
        json!({"metadata": {"name": "b"}, "spec": {"size": 41}}),
    )
    .await
    .unwrap();
    let mut request = ListRequest::of(shoe_kind(&api, "v1"));
    request.fields = "spec.size=41".parse().unwrap();
    let page = api.0.list(&request).unwrap();
    assert_eq!(
        page.items.iter().map(|o| o.name()).collect::<Vec<_>>(),
        ["b"]
    );
    request.fields = "spec.colour=red".parse().unwrap();
    assert_eq!(status(api.0.list(&request)).0, 400);
}

#[tokio::test]
async fn rule_19_fields_are_selected_as_the_requested_version_presents_them() {
    let api = api();
    let mut other = version("v2", false);
    let properties = &mut other["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    properties["laces"] = json!({"type": "string", "default": "short"});
    other["selectableFields"] = json!([{"jsonPath": ".spec.laces"}]);
    let crd = definition(json!([version("v1", true), other]));
    api.create(DEFINITIONS, crd).await.unwrap();
    create(&api, "v1", shoe("a")).await.unwrap();
    let mut request = ListRequest::of(shoe_kind(&api, "v2"));
    for (selector, count) in [("spec.laces=short", 1), ("spec.laces!=short", 0)] {
        request.fields = selector.parse().unwrap();
        assert_eq!(
            api.0.list(&request).unwrap().items.len(),
            count,
            "{selector}"
        );
    }
    request.kind = shoe_kind(&api, "v1");
    assert_eq!(status(api.0.list(&request)).0, 400);
}

/// As in kube-apiserver, the object is converted to the storage version, then pruned by its schema.
#[tokio::test]
async fn rule_30_fields_that_the_storage_version_does_not_declare_are_not_stored() {
    let api = api();
    let mut other = version("v2", false);
    let spec = &mut other["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["properties"]["laces"] = json!({"type": "integer"});
    spec["required"] = json!(["size", "laces"]);
    let crd = definition(json!([version("v1", true), other]));
    api.create(DEFINITIONS, crd).await.unwrap();
    let object = json!({"metadata": {"name": "a"}, "spec": {"size": 40, "laces": 2}});
    // Validation sees the object as it was sent, before pruning.
    create(&api, "v2", object).await.unwrap();
    for name in ["v1", "v2"] {
        let spec = get(&api, name, "a").unwrap()["spec"].clone();
        assert_eq!(spec, json!({"size": 40, "colour": "red"}), "{name}");
    }
    let body = json!({"spec": {"laces": 3, "colour": "blue"}});
    patch(&api, "v2", Subresource::None, PatchKind::Merge, body)
        .await
        .unwrap();
    let spec = get(&api, "v2", "a").unwrap()["spec"].clone();
    assert_eq!(spec, json!({"size": 40, "colour": "blue"}));
}
