//! The types of custom kinds: nesting limits, and changes of a type.

use longshore_engine::{NESTING, Object, Subresource};
use longshore_model::PatchKind;
use serde_json::json;

use super::{DEFINITIONS, create, definition, get, patch, put};
use crate::support::{api, status};

/// The deepest object that is accepted, with its managed fields, can be read back.
#[tokio::test]
async fn rule_31_the_nesting_of_objects_is_limited() {
    let api = api();
    let crd = definition(json!([{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object",
            "x-kubernetes-preserve-unknown-fields": true}}}]));
    api.create(DEFINITIONS, crd).await.unwrap();
    let deep = |levels: usize| {
        let spec = (1..levels).fold(json!("end"), |inner, _| json!({"x": inner}));
        json!({"apiVersion": "example.com/v1", "kind": "Shoe",
            "metadata": {"name": "a"}, "spec": spec})
    };
    let refused = status(create(&api, "v1", deep(NESTING + 1)).await);
    assert_eq!(refused.0, 400, "{refused:?}");
    assert!(refused.2.contains("exceeded max depth"), "{refused:?}");
    let object = create(&api, "v1", deep(NESTING)).await.unwrap().object;
    assert_eq!(object.value()["spec"], deep(NESTING)["spec"]);
    // Clients send the object back in this form.
    put(&api, "a", Subresource::None, object.value())
        .await
        .unwrap();
    let add = |levels: usize| {
        let path = format!("/spec{}/y", "/x".repeat(levels));
        json!([{"op": "add", "path": path, "value": {"z": 1}}])
    };
    let json_patch = async |body| patch(&api, "v1", Subresource::None, PatchKind::Json, body).await;
    let refused = status(json_patch(add(NESTING - 2)).await);
    assert_eq!(refused.0, 422, "{refused:?}");
    let patched = json_patch(add(NESTING - 3)).await.unwrap();
    assert_eq!(patched.value(), get(&api, "v1", "a").unwrap());
    assert!(patched.value()["metadata"]["managedFields"].is_array());
}

/// A map that becomes atomic is owned as a whole, also when the next write is not an apply.
#[tokio::test]
async fn rule_18_an_update_adapts_ownership_to_changed_types() {
    let api = api();
    let with = |map_type: &str| {
        json!([{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"laces": {
                "type": "object", "x-kubernetes-map-type": map_type,
                "properties": {"left": {"type": "string"}, "right": {"type": "string"}},
            }}},
        }}}}])
    };
    api.create(DEFINITIONS, definition(with("granular")))
        .await
        .unwrap();
    let object = json!({"metadata": {"name": "a"}, "spec": {"laces": {"left": "red"}}});
    let made = create(&api, "v1", object).await.unwrap().object;
    let owned = |object: &Object| {
        object.value()["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:laces"].clone()
    };
    assert_eq!(owned(&made), json!({".": {}, "f:left": {}}));
    let change = json!({"spec": {"versions": with("atomic")}});
    api.merge(DEFINITIONS, "shoes.example.com", change)
        .await
        .unwrap();
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    let merge = async |body| patch(&api, "v1", Subresource::None, PatchKind::Merge, body).await;
    let done = merge(label).await.unwrap();
    assert_eq!(owned(&done), json!({}));
    let done = merge(json!({"spec": {"laces": {"right": "blue"}}}))
        .await
        .unwrap();
    assert_eq!(owned(&done), json!({}), "{}", done.value());
}
