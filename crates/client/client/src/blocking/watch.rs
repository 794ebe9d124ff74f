//! Watches.

use std::time::Duration;

use super::{Cluster, Item, Mirror, View, run, waits};
use crate::{error::Result, kind::Object, watch};

/// A change that a [`Watch`] received: see [`WatchEvent`](crate::WatchEvent).
pub type WatchEvent<K> = watch::WatchEvent<K, Cluster>;

impl<K: Object> Mirror for watch::WatchEvent<K> {
    type Here = WatchEvent<K>;

    fn mirror(self) -> WatchEvent<K> {
        match self {
            Self::Added(item) => WatchEvent::Added(item.mirror()),
            Self::Modified(item) => WatchEvent::Modified(item.mirror()),
            Self::Deleted(item) => WatchEvent::Deleted(item.mirror()),
            Self::Resync(list) => WatchEvent::Resync(list.mirror()),
        }
    }
}

/// Changes to the objects of a view: see [`Watch`](crate::Watch). As an iterator, it blocks
/// without a limit and ends with the watch.
#[derive(Debug)]
pub struct Watch<K: Object> {
    inner: watch::Watch<K>,
}

impl<K: Object> Mirror for watch::Watch<K> {
    type Here = Watch<K>;

    fn mirror(self) -> Watch<K> {
        Watch { inner: self }
    }
}

impl<K: Object> View<K> {
    waits! {
        "View": watch() -> Watch<K>;
        "View": watch_since(version: &str) -> Watch<K>;
    }
}

impl<K: Object> Item<K> {
    waits! { "Item": watch() -> Watch<K>; }
}

impl<K: Object> Watch<K> {
    /// Like [`Watch::next`](crate::Watch::next).
    ///
    /// # Errors
    /// The errors of [`Watch::next`](crate::Watch::next).
    pub fn next(&mut self, timeout: Option<Duration>) -> Result<WatchEvent<K>> {
        run(self.inner.next(timeout)).map(Mirror::mirror)
    }

    /// Ends the watch and closes its connection.
    pub fn close(&mut self) {
        self.inner.close();
    }
}

impl<K: Object> Iterator for Watch<K> {
    type Item = Result<WatchEvent<K>>;

    fn next(&mut self) -> Option<Self::Item> {
        match Self::next(self, None) {
            Err(crate::Error::Closed) => None,
            outcome => Some(outcome),
        }
    }
}
