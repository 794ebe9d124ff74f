//! The metadata that the garbage collector reads, and the requests that change it.

use jiff::Timestamp;
use longshore_client::{
    DeleteOptions, Error, Item, Object, OwnerReference, Patch, Propagation, View, kinds::Any,
};
use longshore_model::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};

use super::graph::without_owners;

/// The metadata that the garbage collector reads. It does not use [`Item::meta`],
/// which would keep the labels and annotations of every object in memory.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Slim {
    deletion_timestamp: Option<Timestamp>,
    owner_references: Vec<OwnerReference>,
    finalizers: Vec<String>,
}

/// Returns the metadata without fields that the garbage collector does not need.
pub(super) fn slim<K: Object>(item: &Item<K>) -> ObjectMeta {
    let slim = item.field::<Slim>(&["metadata"]).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot read the owners of an object");
        None
    });
    let slim = slim.unwrap_or_default();
    ObjectMeta {
        name: item.name().to_owned(),
        namespace: item.namespace().map(str::to_owned),
        uid: item.uid().to_owned(),
        resource_version: item.version().to_owned(),
        deletion_timestamp: slim.deletion_timestamp,
        owner_references: slim.owner_references,
        finalizers: slim.finalizers,
        ..ObjectMeta::default()
    }
}

/// Deletes the object if it has not changed.
pub(super) async fn delete(
    view: &View<Any>,
    meta: &ObjectMeta,
    propagation: Propagation,
) -> Result<(), Error> {
    let kind = &view.kind().gvk.kind;
    tracing::debug!(%kind, name = meta.name, "deleting an object whose owners no longer exist");
    let options = DeleteOptions {
        propagation: Some(propagation),
        uid: Some(meta.uid.clone()),
        // Owners may have been added since the object was read.
        version: Some(meta.resource_version.clone()),
        ..DeleteOptions::default()
    };
    view.delete(&meta.name, &options).await.map(|_| ())
}

/// Removes owners from the object.
pub(super) async fn remove_owners(
    view: &View<Any>,
    meta: &ObjectMeta,
    owners: &[String],
) -> Result<(), Error> {
    let left = json!(without_owners(meta, owners));
    change(view, meta, "ownerReferences", left)
        .await
        .map(|_| ())
}

/// Replaces a list in the metadata if the object has not changed. Returns the new
/// metadata, or `None` if the object no longer exists.
pub(super) async fn change(
    view: &View<Any>,
    meta: &ObjectMeta,
    field: &str,
    list: Value,
) -> Result<Option<ObjectMeta>, Error> {
    let patch = Patch::merge(json!({"metadata": {
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
        field: list,
    }}));
    match view.patch(&meta.name, &patch).await {
        Ok(changed) => Ok(Some(slim(&changed))),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
