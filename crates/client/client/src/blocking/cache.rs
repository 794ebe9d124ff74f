//! Caches.

use std::time::Duration;

use longshore_model::LabelSelector;

use super::{Cluster, Item, Mirror, View, reads, run, waits};
use crate::{
    cache,
    error::{Error, Result},
    kind::Object,
};

/// A cached copy of a view's objects: see [`Cache`](crate::Cache).
#[derive(Clone)]
pub struct Cache<K: Object> {
    inner: cache::Cache<K>,
}

impl<K: Object> Mirror for cache::Cache<K> {
    type Here = Cache<K>;

    fn mirror(self) -> Cache<K> {
        Cache { inner: self }
    }
}

/// A change of a [`Cache`]: see [`Change`](crate::Change).
pub type Change<K> = cache::Change<K, Cluster>;

/// The contents of a [`Cache`] at one time: see [`CacheSnapshot`](crate::CacheSnapshot).
pub type CacheSnapshot<K> = cache::CacheSnapshot<K, Cluster>;

impl<K: Object> Mirror for cache::Change<K> {
    type Here = Change<K>;

    fn mirror(self) -> Change<K> {
        match self {
            Self::Upsert(item) => Change::Upsert(item.mirror()),
            Self::Gone(item) => Change::Gone(item.mirror()),
        }
    }
}

impl<K: Object> View<K> {
    waits! { "View": cache() -> Cache<K>; }
}

impl<K: Object> Cache<K> {
    fn inner(&self) -> &cache::Cache<K> {
        &self.inner
    }

    reads! {
        "Cache": items() -> Vec<Item<K>>;
        "Cache": get(namespace: Option<&str>, name: &str) -> Option<Item<K>>;
        "Cache": by_namespace(namespace: &str) -> Vec<Item<K>>;
        "Cache": by_label(key: &str, value: &str) -> Vec<Item<K>>;
        "Cache": matching(selector: &LabelSelector) -> Vec<Item<K>>;
        "Cache": len() -> usize;
        "Cache": is_empty() -> bool;
    }

    /// Like [`Cache::snapshot`](crate::Cache::snapshot).
    #[must_use]
    pub fn snapshot(&self) -> CacheSnapshot<K> {
        let snapshot = self.inner.snapshot();
        let cluster = snapshot.cluster().clone().mirror();
        snapshot.with_connection(cluster)
    }

    /// Like [`Cache::subscribe`](crate::Cache::subscribe).
    #[must_use]
    pub fn subscribe(&self) -> Changes<K> {
        Changes {
            inner: self.inner.subscribe(),
        }
    }
}

/// The changes of a [`Cache`]: see [`Changes`](crate::Changes).
pub struct Changes<K: Object> {
    inner: cache::Changes<K>,
}

impl<K: Object> Changes<K> {
    /// Returns the next change. `None` waits without limit; a timeout of zero returns only
    /// a change that has already arrived.
    ///
    /// # Errors
    /// [`Error::Timeout`] after the timeout; [`Error::Closed`] if the cache has ended.
    pub fn next(&mut self, timeout: Option<Duration>) -> Result<Change<K>> {
        run(async {
            let next = self.inner.next();
            let outcome = match timeout {
                None => next.await,
                Some(after) => {
                    tokio::time::timeout(after, next)
                        .await
                        .map_err(|_| Error::Timeout {
                            waiting_for: "waiting for a change of a cache".to_owned(),
                            after,
                            last: String::new(),
                        })?
                }
            };
            outcome.map(Mirror::mirror).ok_or(Error::Closed)
        })
    }
}
