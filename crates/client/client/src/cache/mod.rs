//! A copy of a view's objects that a watch updates in the background, and the changes to
//! it.

mod changes;
mod fresh;
mod snapshot;
mod store;
mod table;

use std::sync::Arc;

use longshore_model::LabelSelector;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    cluster::Cluster,
    error::Result,
    item::Item,
    kind::{KindOf, Object},
    view::View,
    watch::Session,
};
pub use changes::{Change, Changes};
pub use snapshot::CacheSnapshot;
use store::Store;

/// A copy of a view's objects that a watch updates in the background. Clones share it. The
/// watch ends when the last clone and the last [`Changes`] are dropped.
///
/// Each object is stored as text, without `managedFields`, and is parsed only as far as it
/// is read. Readers never wait for the watch. Use [`Cache::snapshot`] to read several
/// objects in a consistent state.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use serde_json::json;
/// let maps = cluster.configmaps().in_namespace("default")?;
/// for (name, colour) in [("a", "red"), ("b", "blue")] {
///     let metadata = json!({"name": name, "labels": {"colour": colour}});
///     maps.create(&json!({"metadata": metadata})).await?;
/// }
///
/// let cache = maps.cache().await?;
/// assert_eq!(cache.len(), 2);
/// assert!(!cache.resource_version().is_empty() && cache.is_delivered());
/// assert!(cache.get(Some("default"), "a").is_some());
/// assert!(cache.by_namespace("elsewhere").is_empty());
/// for map in cache.by_label("colour", "red") {
///     assert_eq!(map.name(), "a");
/// }
/// let bright = cache.matching(&"colour in (red,yellow)".parse()?);
/// assert_eq!(bright.len(), 1);
/// assert_eq!(cache.items().last().map(|map| map.name().to_owned()), Some("b".to_owned()));
/// # Ok(()) });
/// ```
#[derive(Clone)]
pub struct Cache<K: Object> {
    cluster: Cluster,
    kind: KindOf<K>,
    store: Arc<Store>,
    guard: Arc<DropGuard>,
}

impl<K: Object> Cache<K> {
    async fn open(view: View<K>) -> Result<Self> {
        let filled = fresh::first(&view).await?;
        let store = Arc::new(Store::new(filled.snapshots, filled.version.clone()));
        let token = CancellationToken::new();
        let (cluster, kind) = (view.cluster().clone(), view.marker().clone());
        let mut session = Session::new(view);
        session.go_on(filled.version, filled.lines);
        tokio::spawn(fresh::run(session, store.clone(), token.clone()));
        Ok(Self {
            cluster,
            kind,
            store,
            guard: Arc::new(token.drop_guard()),
        })
    }

    /// Returns the current contents, which do not change.
    #[must_use]
    pub fn snapshot(&self) -> CacheSnapshot<K> {
        CacheSnapshot {
            cluster: self.cluster.clone(),
            kind: self.kind.clone(),
            table: self.store.current(),
        }
    }

    /// Returns all objects, ordered by namespace and name.
    #[must_use]
    pub fn items(&self) -> Vec<Item<K>> {
        self.snapshot().iter().collect()
    }

    /// Returns one object.
    #[must_use]
    pub fn get(&self, namespace: Option<&str>, name: &str) -> Option<Item<K>> {
        self.snapshot().get(namespace, name)
    }

    /// Returns the objects of a namespace, ordered by name.
    #[must_use]
    pub fn by_namespace(&self, namespace: &str) -> Vec<Item<K>> {
        self.snapshot().by_namespace(namespace).collect()
    }

    /// Returns the objects with a label, ordered by namespace and name. Uses an index.
    #[must_use]
    pub fn by_label(&self, key: &str, value: &str) -> Vec<Item<K>> {
        self.snapshot().by_label(key, value)
    }

    /// Returns the objects whose labels match, ordered by namespace and name. Selectors
    /// with a requirement such as `a=b` or `a in (b,c)` use the index.
    #[must_use]
    pub fn matching(&self, selector: &LabelSelector) -> Vec<Item<K>> {
        self.snapshot().matching(selector)
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.current().len()
    }

    /// Returns true if the cache contains no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the resource version of the newest change in the cache, or of the list that
    /// filled it.
    #[must_use]
    pub fn resource_version(&self) -> String {
        self.store.version()
    }

    /// Returns true if every subscriber has processed all changes in the cache: it has received
    /// them, and has requested more. True without subscribers.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        self.store.is_delivered()
    }

    /// Returns the changes from now on. They begin with a [`Change::Upsert`] for each
    /// object in the cache.
    #[must_use]
    pub fn subscribe(&self) -> Changes<K> {
        let (table, subscriber) = self.store.subscribe();
        Changes {
            cluster: self.cluster.clone(),
            kind: self.kind.clone(),
            initial: Some((table, String::new())),
            subscriber,
            _guard: self.guard.clone(),
        }
    }
}

impl<K: Object> std::fmt::Debug for Cache<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache")
            .field("items", &self.len())
            .finish_non_exhaustive()
    }
}

impl<K: Object> View<K> {
    /// Returns a copy of all objects that a watch updates in the background.
    ///
    /// # Errors
    /// The same as [`View::list`], at the first list.
    pub async fn cache(&self) -> Result<Cache<K>> {
        Cache::open(self.clone()).await
    }
}
