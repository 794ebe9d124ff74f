//! The labels of an item, to read and to change.

use std::collections::BTreeMap;

use longshore_model::name;
use serde_json::{Value, json};

use crate::{error::Result, item::Item, kinds::Kind, options::Patch};

/// An item's labels as they were in its snapshot; changes go to the cluster
/// and give the new item.
#[derive(Debug, Clone)]
pub struct ResourceLabels<K: Kind> {
    item: Item<K>,
}

impl<K: Kind> ResourceLabels<K> {
    pub(crate) fn new(item: Item<K>) -> Self {
        Self { item }
    }

    /// The value of a label.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.item.meta().labels.get(key).map(String::as_str)
    }

    /// All labels, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.item
            .meta()
            .labels
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// How many labels there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.item.meta().labels.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of all labels.
    #[must_use]
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.item.meta().labels.clone()
    }

    /// Sets a label; the new item.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for an invalid key or value,
    /// before any request.
    pub async fn set(&self, key: &str, value: &str) -> Result<Item<K>> {
        self.set_many([(key, value)]).await
    }

    /// Sets several labels in one request; the new item.
    ///
    /// # Errors
    /// As [`ResourceLabels::set`]; then none is set.
    pub async fn set_many<Key, Val>(
        &self,
        labels: impl IntoIterator<Item = (Key, Val)>,
    ) -> Result<Item<K>>
    where
        Key: AsRef<str>,
        Val: AsRef<str>,
    {
        let mut wanted = serde_json::Map::new();
        for (key, value) in labels {
            name::label_key(key.as_ref())?;
            name::label_value(value.as_ref())?;
            wanted.insert(key.as_ref().to_owned(), value.as_ref().into());
        }
        self.merge(wanted).await
    }

    /// Takes a label off; the new item. That it is not there is no error.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for an invalid key, before
    /// any request.
    pub async fn delete(&self, key: &str) -> Result<Item<K>> {
        name::label_key(key)?;
        self.merge(serde_json::Map::from_iter([(key.to_owned(), Value::Null)]))
            .await
    }

    async fn merge(&self, labels: serde_json::Map<String, Value>) -> Result<Item<K>> {
        self.item
            .patch(&Patch::merge(json!({ "metadata": { "labels": labels } })))
            .await
    }
}
