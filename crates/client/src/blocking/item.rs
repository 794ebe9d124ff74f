//! Items and lists.

use std::{ops::Deref, time::Duration};

use super::{Mirror, run, waits};
use crate::{
    error::Result,
    item,
    kind::{Kind, Object},
    list,
    options::{DeleteOptions, Patch},
    view::Scale,
};

/// One version of one object: see [`Item`](crate::Item), which it gives out by
/// dereferencing, so that all its reading functions can be called here.
#[derive(Debug)]
pub struct Item<K: Object> {
    pub(super) inner: item::Item<K>,
}

impl<K: Object> Clone for Item<K> {
    fn clone(&self) -> Self {
        self.inner.clone().mirror()
    }
}

impl<K: Object> PartialEq for Item<K> {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl<K: Object> Eq for Item<K> {}

impl<K: Object> Deref for Item<K> {
    type Target = item::Item<K>;

    fn deref(&self) -> &item::Item<K> {
        &self.inner
    }
}

impl<K: Object> Mirror for item::Item<K> {
    type Here = Item<K>;

    fn mirror(self) -> Item<K> {
        Item { inner: self }
    }
}

/// A list response: see [`List`](crate::List).
#[derive(Debug, Clone)]
pub struct List<K: Object> {
    /// The items, in the server's order.
    pub items: Vec<Item<K>>,
    /// The collection's resourceVersion.
    pub version: String,
}

impl<K: Object> List<K> {
    /// The items by reference, in the server's order.
    pub fn iter(&self) -> std::slice::Iter<'_, Item<K>> {
        self.items.iter()
    }
}

impl<'a, K: Object> IntoIterator for &'a List<K> {
    type Item = &'a Item<K>;
    type IntoIter = std::slice::Iter<'a, Item<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: Object> IntoIterator for List<K> {
    type Item = Item<K>;
    type IntoIter = std::vec::IntoIter<Item<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<K: Object> Mirror for list::List<K> {
    type Here = List<K>;

    fn mirror(self) -> List<K> {
        List {
            items: self.items.mirror(),
            version: self.version,
        }
    }
}

impl<K: Object> Item<K> {
    waits! {
        "Item": api_paths() -> Vec<String>;
        "Item": fetch() -> Self;
        "Item": patch(patch: &Patch) -> Self;
        "Item": patch_status(patch: &Patch) -> Self;
        "Item": delete(options: &DeleteOptions) -> ();
        "Item": wait_gone(timeout: Duration) -> ();
        "Item": scale() -> Scale;
        "Item": set_scale(replicas: u32) -> Scale;
    }

    /// As [`Item::into_kind`](crate::Item::into_kind).
    ///
    /// # Errors
    /// As there.
    pub fn into_kind<L: Kind>(self) -> Result<Item<L>> {
        self.inner.into_kind().map(Mirror::mirror)
    }

    /// As [`Item::wait`](crate::Item::wait).
    ///
    /// # Errors
    /// As there.
    pub fn wait(
        &self,
        until: impl FnMut(&item::Item<K>) -> bool + Send,
        timeout: Duration,
    ) -> Result<Self> {
        run(self.inner.wait(until, timeout)).map(Mirror::mirror)
    }
}
