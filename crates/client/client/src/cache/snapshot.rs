//! The contents of a cache at one time.

use std::sync::Arc;

use longshore_model::LabelSelector;

use super::table::Table;
use crate::{
    cluster::{Cluster, Connection},
    item::Item,
    kind::{KindOf, Object},
};
use longshore_snapshots::Snapshot;

/// The contents of a [`Cache`](crate::Cache) at one time. Cheap to create and to clone. It
/// keeps the objects that have changed since in memory.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use longshore_client::DeleteOptions;
/// # let maps = cluster.configmaps().in_namespace("default")?;
/// # let metadata = serde_json::json!({"name": "a", "labels": {"colour": "red"}});
/// # maps.create(&serde_json::json!({"metadata": metadata})).await?;
/// let cache = maps.cache().await?;
/// let before = cache.snapshot();
/// let mut changes = cache.subscribe();
/// maps.delete("a", &DeleteOptions::default()).await?;
/// // The object existed, then it was deleted.
/// changes.next().await;
/// changes.next().await;
/// assert!(cache.is_empty());
///
/// // A snapshot is consistent, even if the cache changes in the meantime.
/// assert!(!before.is_empty());
/// assert_eq!(before.iter().count(), before.len());
/// assert!(before.get(Some("default"), "a").is_some());
/// assert_eq!(before.by_namespace("default").count(), 1);
/// assert_eq!(before.by_label("colour", "red").len(), 1);
/// assert_eq!(before.matching(&"colour!=blue".parse()?).len(), 1);
/// # Ok(()) });
/// ```
#[derive(Clone)]
pub struct CacheSnapshot<K: Object, C: Connection = Cluster> {
    pub(super) cluster: C,
    pub(super) kind: KindOf<K>,
    pub(super) table: Arc<Table>,
}

impl<K: Object> CacheSnapshot<K> {
    /// The same snapshot, with items of another connection.
    pub(crate) fn with_connection<C: Connection>(self, cluster: C) -> CacheSnapshot<K, C> {
        CacheSnapshot {
            cluster,
            kind: self.kind,
            table: self.table,
        }
    }
}

impl<K: Object, C: Connection> CacheSnapshot<K, C> {
    pub(crate) fn cluster(&self) -> &C {
        &self.cluster
    }

    fn wrap(&self, snapshot: &Arc<Snapshot>) -> Item<K, C> {
        Item::new(self.cluster.clone(), self.kind.clone(), snapshot.clone())
    }

    /// Returns all objects, ordered by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = Item<K, C>> {
        self.table.iter().map(|(_, snapshot)| self.wrap(snapshot))
    }

    /// Like [`Cache::get`](crate::Cache::get).
    #[must_use]
    pub fn get(&self, namespace: Option<&str>, name: &str) -> Option<Item<K, C>> {
        let found = self.table.get(namespace, name);
        found.map(|snapshot| self.wrap(snapshot))
    }

    /// Like [`Cache::by_namespace`](crate::Cache::by_namespace).
    pub fn by_namespace(&self, namespace: &str) -> impl Iterator<Item = Item<K, C>> {
        let found = self.table.by_namespace(namespace);
        found.map(|snapshot| self.wrap(snapshot))
    }

    /// Like [`Cache::by_label`](crate::Cache::by_label).
    #[must_use]
    pub fn by_label(&self, key: &str, value: &str) -> Vec<Item<K, C>> {
        let found = self.table.by_label(key, value);
        found.map(|snapshot| self.wrap(snapshot)).collect()
    }

    /// Like [`Cache::matching`](crate::Cache::matching).
    #[must_use]
    pub fn matching(&self, selector: &LabelSelector) -> Vec<Item<K, C>> {
        let found = self.table.matching(selector).into_iter();
        found.map(|snapshot| self.wrap(snapshot)).collect()
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns true if the snapshot contains no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Object, C: Connection> std::fmt::Debug for CacheSnapshot<K, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CacheSnapshot")
            .field("items", &self.len())
            .finish_non_exhaustive()
    }
}
