//! Rules 30 and 15: CustomResourceDefinitions, their kinds, and the scale subresource.

mod concurrent_definition;
mod definitions;
mod deletion;
mod embedded;
mod expressions;
mod objects;
mod scale;
mod types;

use std::sync::Arc;

use longshore_engine::{
    Create, Delete, DeleteOptions, Error, Object, Patch, ReadVersion, Subresource, Target, Update,
    WriteOptions, Written,
};
use longshore_model::{KindInfo, PatchKind};
use serde_json::{Value, json};

use crate::support::{Api, api};

pub(super) const DEFINITIONS: &str = "customresourcedefinitions";

pub(super) fn schema() -> Value {
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1},
            "colour": {"type": "string", "default": "red"},
            "replicas": {"type": "integer"},
        }},
        "status": {"type": "object", "properties": {
            "replicas": {"type": "integer"}, "selector": {"type": "string"},
        }},
    }})
}

pub(super) fn version(name: &str, storage: bool) -> Value {
    json!({"name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": schema()},
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
        "selectableFields": [{"jsonPath": ".spec.size"}]})
}

pub(super) fn definition(versions: Value) -> Value {
    json!({"metadata": {"name": "shoes.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "shoes", "kind": "Shoe", "shortNames": ["sh"]},
        "versions": versions,
    }})
}

/// An engine with the kind `Shoe`.
pub(super) async fn shoes() -> Api {
    let api = api();
    let crd = definition(json!([version("v1", true)]));
    api.create(DEFINITIONS, crd).await.unwrap();
    api
}

pub(super) fn shoe_kind(api: &Api, version: &str) -> Arc<KindInfo> {
    api.0.find("example.com", version, "shoes").unwrap()
}

pub(super) fn target(api: &Api, version: &str, name: &str) -> Target {
    Target {
        kind: shoe_kind(api, version),
        namespace: Some("default".into()),
        name: name.into(),
    }
}

pub(super) fn shoe(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"size": 40}})
}

pub(super) async fn create(api: &Api, version: &str, object: Value) -> Result<Written, Error> {
    let kind = shoe_kind(api, version);
    let create = Create {
        kind,
        namespace: Some("default".into()),
        object,
        options: WriteOptions::default(),
    };
    api.0.create(create).await
}

pub(super) fn get(api: &Api, version: &str, name: &str) -> Result<Value, Error> {
    let kind = shoe_kind(api, version);
    let object = api
        .0
        .get(&kind, Some("default"), name, ReadVersion::Latest)?;
    Ok(object.value())
}

pub(super) async fn put(
    api: &Api,
    name: &str,
    subresource: Subresource,
    object: Value,
) -> Result<Arc<Object>, Error> {
    let update = Update {
        target: target(api, "v1", name),
        subresource,
        object,
        options: WriteOptions::default(),
    };
    Ok(api.0.update(update).await?.object)
}

pub(super) async fn patch(
    api: &Api,
    version: &str,
    subresource: Subresource,
    kind: PatchKind,
    body: Value,
) -> Result<Arc<Object>, Error> {
    let patch = Patch {
        target: target(api, version, "a"),
        subresource,
        kind,
        body,
        options: WriteOptions::default(),
    };
    Ok(api.0.patch(patch).await?.object)
}

pub(super) async fn delete(api: &Api, name: &str) {
    let delete = Delete {
        target: target(api, "v1", name),
        options: DeleteOptions::default(),
    };
    api.0.delete(delete).await.unwrap();
}
