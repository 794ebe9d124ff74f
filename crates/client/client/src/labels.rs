//! Reads and changes the labels and annotations of an item.

use std::{collections::BTreeMap, marker::PhantomData};

use longshore_model::{ObjectMeta, name};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Connection},
    error::Result,
    item::Item,
    kind::Object,
    options::Patch,
};

/// Marks [`Words`] as labels.
#[derive(Debug, Clone, Copy)]
pub struct Labels;

/// Marks [`Words`] as annotations.
#[derive(Debug, Clone, Copy)]
pub struct Annotations;

/// Selects labels or annotations.
pub trait Part: Clone + Send + Sync + 'static + sealed::Sealed {
    /// The name of the field in the metadata.
    const FIELD: &'static str;

    /// Returns the values.
    fn of(meta: &ObjectMeta) -> &BTreeMap<String, String>;

    /// Validates a key.
    ///
    /// # Errors
    /// The key violates the rule that the error names.
    fn key(text: &str) -> Result<()>;

    /// Validates a value.
    ///
    /// # Errors
    /// The value violates the rule that the error names.
    fn value(text: &str) -> Result<()>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Labels {}
    impl Sealed for super::Annotations {}
}

impl Part for Labels {
    const FIELD: &'static str = "labels";

    fn of(meta: &ObjectMeta) -> &BTreeMap<String, String> {
        &meta.labels
    }

    fn key(text: &str) -> Result<()> {
        Ok(name::label_key(text)?)
    }

    fn value(text: &str) -> Result<()> {
        Ok(name::label_value(text)?)
    }
}

impl Part for Annotations {
    const FIELD: &'static str = "annotations";

    fn of(meta: &ObjectMeta) -> &BTreeMap<String, String> {
        &meta.annotations
    }

    fn key(text: &str) -> Result<()> {
        Ok(name::annotation_key(text)?)
    }

    fn value(_: &str) -> Result<()> {
        Ok(())
    }
}

/// An item's labels: see [`Words`].
pub type ResourceLabels<K> = Words<K, Labels>;

/// An item's annotations: see [`Words`].
pub type ResourceAnnotations<K> = Words<K, Annotations>;

/// An item's labels or annotations, as of its version. Changes are sent to the cluster and
/// return the new item.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use serde_json::json;
/// # let pods = cluster.pods().in_namespace("default")?;
/// # let containers = json!([{"name": "main", "image": "busybox"}]);
/// # let web = json!({"metadata": {"name": "web"}, "spec": {"containers": containers}});
/// # pods.create(&web).await?;
/// let pod = pods.fetch("web").await?;
/// assert!(pod.labels().is_empty());
/// let pod = pod.labels().set("tier", "front").await?;
/// assert_eq!(pod.labels().get("tier"), Some("front"));
///
/// // Several labels in one request.
/// let more = [("app", "web"), ("track", "stable")];
/// let pod = pod.labels().set_many(more).await?;
/// assert_eq!(pod.labels().len(), 3);
/// for (key, value) in pod.labels().iter() {
///     println!("{key}={value}");
/// }
///
/// let pod = pod.labels().delete("tier").await?;
/// assert!(pod.labels().get("tier").is_none());
/// assert_eq!(pod.labels().to_map()["app"], "web");
///
/// // The values of annotations have no format.
/// let pod = pod.annotations().set("note", "any text, at length").await?;
/// assert_eq!(pod.annotations().get("note"), Some("any text, at length"));
/// assert!(pod.labels().set("note", "any text").await.is_err());
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
pub struct Words<K: Object, P: Part, C: Connection = Cluster> {
    item: Item<K, C>,
    part: PhantomData<P>,
}

impl<K: Object, C: Connection> Item<K, C> {
    /// The labels of the object.
    #[must_use]
    pub fn labels(&self) -> Words<K, Labels, C> {
        Words::new(self.clone())
    }

    /// The annotations of the object.
    #[must_use]
    pub fn annotations(&self) -> Words<K, Annotations, C> {
        Words::new(self.clone())
    }
}

impl<K: Object, P: Part, C: Connection> Words<K, P, C> {
    pub(crate) fn new(item: Item<K, C>) -> Self {
        Self {
            item,
            part: PhantomData,
        }
    }

    pub(crate) fn item(&self) -> &Item<K, C> {
        &self.item
    }

    fn words(&self) -> &BTreeMap<String, String> {
        P::of(self.item.meta())
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.words().get(key).map(String::as_str)
    }

    /// Returns all entries, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.words().iter();
        pairs.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words().len()
    }

    /// Returns true if the map is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a copy of all entries.
    #[must_use]
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.words().clone()
    }
}

impl<K: Object, P: Part> Words<K, P> {
    /// Sets a label or annotation and returns the new item.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for an invalid key or value, before any
    /// request.
    pub async fn set(&self, key: &str, value: &str) -> Result<Item<K>> {
        self.set_many([(key, value)]).await
    }

    /// Sets several labels or annotations in one request and returns the new item.
    ///
    /// # Errors
    /// The same as [`Words::set`]. After an error, no entry is set.
    pub async fn set_many<Key, Val>(
        &self,
        words: impl IntoIterator<Item = (Key, Val)>,
    ) -> Result<Item<K>>
    where
        Key: AsRef<str>,
        Val: AsRef<str>,
    {
        let mut wanted = serde_json::Map::new();
        for (key, value) in words {
            P::key(key.as_ref())?;
            P::value(value.as_ref())?;
            wanted.insert(key.as_ref().to_owned(), value.as_ref().into());
        }
        self.merge(wanted).await
    }

    /// Removes one and returns the new item. Succeeds if it does not exist.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for an invalid key, before any request.
    pub async fn delete(&self, key: &str) -> Result<Item<K>> {
        P::key(key)?;
        self.merge(serde_json::Map::from_iter([(key.to_owned(), Value::Null)]))
            .await
    }

    async fn merge(&self, words: serde_json::Map<String, Value>) -> Result<Item<K>> {
        let patch = Patch::merge(json!({ "metadata": { P::FIELD: words } }));
        self.item.patch(&patch).await
    }
}
