//! A ReplicaSet or ReplicationController, read once from the object.

use std::collections::BTreeMap;

use longshore_client::{Error, Item, LabelSelector, kinds::Any};
use longshore_model::selector::StructuredSelector;
use serde::Deserialize;
use serde_json::Value;

use super::{flavor::Flavor, status::Status};
use crate::key::Key;

/// What the controller needs to know of it.
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
    /// Deletion has begun.
    pub(crate) deleting: bool,
    /// Uid of its own controller, a Deployment.
    pub(crate) owner: Option<String>,
    /// Wanted pods.
    pub(crate) replicas: usize,
    /// How long a pod must be ready to count as available.
    pub(crate) min_ready_seconds: u32,
    /// Its pods.
    pub(crate) selector: LabelSelector,
    /// Template of its pods.
    pub(crate) template: Value,
    /// Labels of the template.
    pub(crate) template_labels: BTreeMap<String, String>,
    /// Status, as stored.
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
    /// Reads it from the object.
    ///
    /// # Errors
    /// A field that is not what the API promises.
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

    /// Whether its selector selects the labels. An empty one selects nothing.
    pub(crate) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        !self.selector.is_everything() && self.selector.matches(labels)
    }
}

fn read<T: for<'de> Deserialize<'de> + Default>(value: Value) -> Result<T, String> {
    let read = serde_json::from_value::<Option<T>>(value);
    read.map(Option::unwrap_or_default)
        .map_err(|error| error.to_string())
}
