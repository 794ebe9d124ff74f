//! Caches.

use std::{ops::Deref, time::Duration};

use super::{Mirror, View, run, waits};
use crate::{
    cache::{self, Change},
    error::{Error, Result},
    kind::Object,
};

/// A copy of a view's objects, kept fresh: see [`Cache`](crate::Cache), which it
/// gives out by dereferencing.
#[derive(Clone)]
pub struct Cache<K: Object> {
    inner: cache::Cache<K>,
}

impl<K: Object> Deref for Cache<K> {
    type Target = cache::Cache<K>;

    fn deref(&self) -> &cache::Cache<K> {
        &self.inner
    }
}

impl<K: Object> Mirror for cache::Cache<K> {
    type Here = Cache<K>;

    fn mirror(self) -> Cache<K> {
        Cache { inner: self }
    }
}

impl<K: Object> View<K> {
    waits! { "View": cache() -> Cache<K>; }
}

impl<K: Object> Cache<K> {
    /// As [`Cache::subscribe`](crate::Cache::subscribe).
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
    /// The next change. `None` waits for ever, zero takes only what is there.
    ///
    /// # Errors
    /// [`Error::Timeout`] when the time runs out, [`Error::Closed`] once the
    /// cache has ended.
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
            outcome.ok_or(Error::Closed)
        })
    }
}
