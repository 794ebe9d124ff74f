//! The fields of a ReplicaSet or ReplicationController that the controller reads.

use std::collections::BTreeMap;

use longshore_client::{Error, Item, LabelSelector, kinds::Any};
use longshore_model::selector::StructuredSelector;
use serde::Deserialize;
use serde_json::Value;

use super::{flavor::Flavor, status::Status};
use crate::key::Key;

/// The fields of a ReplicaSet or ReplicationController that the controller reads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Set {
    /// Namespace and name.
    pub(crate) key: Key,
    /// Uid.
    pub(crate) uid: String,
    /// resourceVersion.
    pub(crate) version: String,
    /// Generation.
    pub(crate) generation: i64,
    /// True if the set is being deleted.
    pub(crate) deleting: bool,
    /// The UID of the set's controller, a Deployment.
    pub(crate) owner: Option<String>,
    /// The desired number of pods.
    pub(crate) replicas: usize,
    /// The time in seconds for which a pod must be ready before it counts as available.
    pub(crate) min_ready_seconds: u32,
    /// The selector of the set's pods.
    pub(crate) selector: LabelSelector,
    /// The pod template.
    pub(crate) template: Value,
    /// The labels of the template.
    pub(crate) template_labels: BTreeMap<String, String>,
    /// The stored status.
    pub(crate) status: Status,
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    spec: RawSpec,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    replicas: Option<u32>,
    min_ready_seconds: Option<u32>,
    selector: Option<Value>,
    template: Value,
}

impl Set {
    /// Reads the object.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(crate) fn of(flavor: &Flavor, item: &Item<Any>) -> Result<Self, Error> {
        let raw: Raw = item.typed()?;
        let meta = item.meta();
        let unreadable = |problem: String| Error::Invalid(problem);
        let selector = raw.spec.selector.unwrap_or_default();
        let selector = if flavor.plain_selector {
            StructuredSelector {
                match_labels: read(selector).map_err(unreadable)?,
                match_expressions: Vec::new(),
            }
        } else {
            read(selector).map_err(unreadable)?
        };
        let selector = LabelSelector::try_from(selector);
        Ok(Self {
            key: Key::of(item),
            uid: item.uid().to_owned(),
            version: item.version().to_owned(),
            generation: meta.generation.unwrap_or(0),
            deleting: meta.deletion_timestamp.is_some(),
            owner: meta.controller().map(|owner| owner.uid.clone()),
            replicas: raw.spec.replicas.unwrap_or(1) as usize,
            min_ready_seconds: raw.spec.min_ready_seconds.unwrap_or(0),
            selector: selector.map_err(|error| unreadable(error.to_string()))?,
            template_labels: read(raw.spec.template["metadata"]["labels"].clone())
                .map_err(unreadable)?,
            template: raw.spec.template,
            status: raw.status.unwrap_or_default(),
        })
    }

    /// Returns true if the set selects these labels. An empty selector matches nothing.
    pub(crate) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        !self.selector.is_everything() && self.selector.matches(labels)
    }
}

fn read<T: for<'de> Deserialize<'de> + Default>(value: Value) -> Result<T, String> {
    let read = serde_json::from_value::<Option<T>>(value);
    read.map(Option::unwrap_or_default)
        .map_err(|error| error.to_string())
}
