//! The fields of a ControllerRevision that the controllers read.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use longshore_client::{Error, Item, kinds::Any};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::key::Key;

/// A ControllerRevision.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Revision {
    /// Namespace and name.
    pub(crate) key: Key,
    /// Uid.
    pub(crate) uid: String,
    /// resourceVersion.
    pub(crate) version: String,
    /// The creation time.
    pub(crate) created: Option<Timestamp>,
    /// True if the revision is being deleted.
    pub(crate) deleting: bool,
    /// The name and UID of the controller.
    pub(crate) owner: Option<(String, String)>,
    /// Labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// The number of the revision.
    pub(crate) number: i64,
    /// The patch that restores the template.
    pub(crate) data: Value,
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    revision: i64,
    #[serde(default)]
    data: Value,
}

impl Revision {
    /// Reads the object.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(crate) fn of(item: &Item<Any>) -> Result<Self, Error> {
        let raw: Raw = item.typed()?;
        let meta = item.meta();
        let owner = meta.controller();
        Ok(Self {
            key: Key::of(item),
            uid: item.uid().to_owned(),
            version: item.version().to_owned(),
            created: meta.creation_timestamp,
            deleting: meta.deletion_timestamp.is_some(),
            owner: owner.map(|owner| (owner.name.clone(), owner.uid.clone())),
            labels: meta.labels.clone(),
            number: raw.revision,
            data: raw.data,
        })
    }

    /// Returns true if the object with this UID is the controller.
    pub(crate) fn is_owned_by(&self, uid: &str) -> bool {
        self.owner.as_ref().is_some_and(|(_, owner)| owner == uid)
    }
}

/// Returns the data of a revision: a strategic merge patch that replaces the template.
/// kubectl applies it to undo a rollout.
pub(crate) fn data(template: &Value) -> Value {
    let mut template = template.clone();
    template["$patch"] = "replace".into();
    json!({"spec": {"template": template}})
}

/// Returns the template that the data of a revision restores.
pub(crate) fn template(data: &Value) -> Value {
    let mut template = data["spec"]["template"].clone();
    if let Some(fields) = template.as_object_mut() {
        fields.remove("$patch");
    }
    template
}

/// Sorts revisions from the oldest to the newest.
pub(crate) fn sort(revisions: &mut [Arc<Revision>]) {
    revisions.sort_by(|a, b| {
        let order = |revision: &Revision| (revision.number, revision.created);
        order(a)
            .cmp(&order(b))
            .then_with(|| a.key.name.cmp(&b.key.name))
    });
}
