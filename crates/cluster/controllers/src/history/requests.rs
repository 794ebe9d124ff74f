//! The requests for ControllerRevisions.

use longshore_client::{DeleteOptions, Error, Patch, View, kinds::Any};
use serde_json::{Value, json};

use super::{
    hash::{hash, name},
    revision::Revision,
};
use crate::key::Key;

/// A revision to create.
#[derive(Debug)]
pub(crate) struct NewRevision<'a> {
    /// The namespace and name of the controller.
    pub(crate) parent: &'a Key,
    /// The reference to the controller.
    pub(crate) owner: Value,
    /// The annotations of the controller.
    pub(crate) annotations: Value,
    /// The label for the hash.
    pub(crate) hash_label: &'static str,
    /// The number of the revision.
    pub(crate) number: i64,
    /// The patch that restores the template.
    pub(crate) data: &'a Value,
    /// The part of the data that determines the name. It differs between the kinds, because a
    /// StatefulSet and a DaemonSet can have the same name and template.
    pub(crate) hashed: &'a Value,
}

/// Creates a revision. If a revision with other data has the name, the collision count increases.
/// Returns the revision and the collision count.
///
/// # Errors
/// A request failed.
pub(crate) async fn create(
    revisions: &View<Any>,
    new: &NewRevision<'_>,
    mut collisions: i64,
) -> Result<(Revision, i64), Error> {
    let view = revisions.clone().in_namespace(&new.parent.namespace)?;
    loop {
        let hash = hash(new.hashed, collisions);
        let name = name(&new.parent.name, &hash);
        let mut labels = new.data["spec"]["template"]["metadata"]["labels"].clone();
        labels[new.hash_label] = hash.into();
        let object = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {
                "name": name, "labels": labels, "annotations": new.annotations,
                "ownerReferences": [new.owner],
            },
            "data": new.data,
            "revision": new.number,
        });
        match view.create(&object).await {
            Err(error) if error.is_already_exists() => {
                let found = Revision::of(&view.fetch(&name).await?)?;
                // The existing revision may be of a deleted controller with the same name. Pods
                // with this revision are not replaced.
                if found.data == *new.data {
                    return Ok((found, collisions));
                }
                collisions = collisions.saturating_add(1);
            }
            done => return Ok((Revision::of(&done?)?, collisions)),
        }
    }
}

/// Changes the number of a revision.
///
/// # Errors
/// The request failed.
pub(crate) async fn renumber(
    revisions: &View<Any>,
    revision: &Revision,
    number: i64,
) -> Result<Revision, Error> {
    let patch = Patch::merge(json!({
        "metadata": {"uid": revision.uid, "resourceVersion": revision.version},
        "revision": number,
    }));
    let view = revisions.clone().in_namespace(&revision.key.namespace)?;
    Revision::of(&view.patch(&revision.key.name, &patch).await?)
}

/// Deletes a revision.
///
/// # Errors
/// The request failed.
pub(crate) async fn remove(revisions: &View<Any>, revision: &Revision) -> Result<(), Error> {
    let options = DeleteOptions {
        uid: Some(revision.uid.clone()),
        ..DeleteOptions::default()
    };
    let view = revisions.clone().in_namespace(&revision.key.namespace)?;
    match view.delete(&revision.key.name, &options).await {
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        done => done,
    }
}
