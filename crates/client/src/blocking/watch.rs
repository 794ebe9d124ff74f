//! Watches.

use std::time::Duration;

use super::{Item, List, Mirror, View, run, waits};
use crate::{error::Result, kind::Object, watch};

/// A change that a [`Watch`] saw: see [`WatchEvent`](crate::WatchEvent).
#[derive(Debug, Clone)]
pub enum WatchEvent<K: Object> {
    /// The object is new, or new to the view's selectors.
    Added(Item<K>),
    /// The object has changed.
    Modified(Item<K>),
    /// The object is gone, or no longer matches; its last state.
    Deleted(Item<K>),
    /// History is lost: here is everything as it is now.
    Resync(List<K>),
}

impl<K: Object> WatchEvent<K> {
    /// The object of a single change.
    #[must_use]
    pub fn item(&self) -> Option<&Item<K>> {
        match self {
            Self::Added(item) | Self::Modified(item) | Self::Deleted(item) => Some(item),
            Self::Resync(_) => None,
        }
    }
}

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

/// Changes to the objects of a view: see [`Watch`](crate::Watch). Also an
/// iterator, which waits as long as it takes and ends with the watch.
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
    /// As [`Watch::next`](crate::Watch::next).
    ///
    /// # Errors
    /// As there.
    pub fn next(&mut self, timeout: Option<Duration>) -> Result<WatchEvent<K>> {
        run(self.inner.next(timeout)).map(Mirror::mirror)
    }

    /// Ends the watch and frees its connection.
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
