//! Items, lists, labels and annotations.

use std::{ops::Deref, time::Duration};

use super::{Cluster, Logs, Mirror, View, Watch, run, waits};
use crate::{
    error::Result,
    item,
    kind::{Any, Kind},
    kinds,
    labels::{self, Annotations, Labels, Part},
    list,
    options::{DeleteOptions, LogOptions, Patch},
    view::Scale,
};

/// One version of one object: see [`Item`](crate::Item), which it gives out by
/// dereferencing, so that everything it tells can be read here.
#[derive(Debug)]
pub struct Item<K: Kind> {
    inner: item::Item<K>,
}

impl<K: Kind> Clone for Item<K> {
    fn clone(&self) -> Self {
        self.inner.clone().mirror()
    }
}

impl<K: Kind> PartialEq for Item<K> {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl<K: Kind> Eq for Item<K> {}

impl<K: Kind> Deref for Item<K> {
    type Target = item::Item<K>;

    fn deref(&self) -> &item::Item<K> {
        &self.inner
    }
}

impl<K: Kind> Mirror for item::Item<K> {
    type Here = Item<K>;

    fn mirror(self) -> Item<K> {
        Item { inner: self }
    }
}

/// A list response: see [`List`](crate::List).
#[derive(Debug, Clone)]
pub struct List<K: Kind> {
    /// The items, in the server's order.
    pub items: Vec<Item<K>>,
    /// The collection's resourceVersion.
    pub version: String,
}

impl<K: Kind> List<K> {
    /// The items by reference, in the server's order.
    pub fn iter(&self) -> std::slice::Iter<'_, Item<K>> {
        self.items.iter()
    }
}

impl<'a, K: Kind> IntoIterator for &'a List<K> {
    type Item = &'a Item<K>;
    type IntoIter = std::slice::Iter<'a, Item<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: Kind> IntoIterator for List<K> {
    type Item = Item<K>;
    type IntoIter = std::vec::IntoIter<Item<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<K: Kind> Mirror for list::List<K> {
    type Here = List<K>;

    fn mirror(self) -> List<K> {
        List {
            items: self.items.mirror(),
            version: self.version,
        }
    }
}

impl<K: Kind> Item<K> {
    pub(super) fn inside(&self) -> &item::Item<K> {
        &self.inner
    }

    /// The cluster it came from.
    #[must_use]
    pub fn cluster(&self) -> Cluster {
        self.inner.cluster().clone().mirror()
    }

    /// Its labels, to read and to change.
    #[must_use]
    pub fn labels(&self) -> Words<K, Labels> {
        self.inner.labels().mirror()
    }

    /// Its annotations, to read and to change.
    #[must_use]
    pub fn annotations(&self) -> Words<K, Annotations> {
        self.inner.annotations().mirror()
    }

    waits! {
        "Item": fetch() -> Self;
        "Item": patch(patch: &Patch) -> Self;
        "Item": patch_status(patch: &Patch) -> Self;
        "Item": delete(options: &DeleteOptions) -> ();
        "Item": watch() -> Watch<K>;
        "Item": wait_gone(timeout: Duration) -> ();
        "Item": scale() -> Scale;
        "Item": set_scale(replicas: u32) -> Scale;
        "Item": owner() -> Option<Item<Any>>;
        "Item": owners() -> Vec<Item<Any>>;
        "Item": events() -> Vec<Item<kinds::Event>>;
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

    /// As [`Item::children`](crate::Item::children).
    ///
    /// # Errors
    /// As there.
    pub fn children<C: Kind + Default>(&self) -> Result<Vec<Item<C>>> {
        run(self.inner.children::<C>()).map(Mirror::mirror)
    }

    /// As [`Item::children_in`](crate::Item::children_in).
    ///
    /// # Errors
    /// As there.
    pub fn children_in<C: Kind>(&self, view: &View<C>) -> Result<Vec<Item<C>>> {
        run(self.inner.children_in(view.inside())).map(Mirror::mirror)
    }
}

macro_rules! pods {
    ($($kind:ident),*) => {
        $(impl Item<kinds::$kind> {
            waits! { "Item": pods() -> Vec<Item<kinds::Pod>>; }
        })*
    };
}

pods!(
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    Node,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet
);

impl Item<kinds::Deployment> {
    waits! { "Item": replica_sets() -> Vec<Item<kinds::ReplicaSet>>; }
}

impl Item<kinds::CronJob> {
    waits! { "Item": jobs() -> Vec<Item<kinds::Job>>; }
}

impl Item<kinds::Pod> {
    waits! { "Item": evict(options: &DeleteOptions) -> (); }

    /// As [`Item::logs`](crate::Item::logs), to read from.
    ///
    /// # Errors
    /// As there.
    pub fn logs(&self, options: &LogOptions) -> Result<Logs> {
        run(self.inner.logs(options)).map(Logs::new)
    }
}

/// Labels or annotations: see [`Words`](crate::Words).
#[derive(Debug, Clone)]
pub struct Words<K: Kind, P: Part> {
    inner: labels::Words<K, P>,
}

impl<K: Kind, P: Part> Mirror for labels::Words<K, P> {
    type Here = Words<K, P>;

    fn mirror(self) -> Words<K, P> {
        Words { inner: self }
    }
}

impl<K: Kind, P: Part> Deref for Words<K, P> {
    type Target = labels::Words<K, P>;

    fn deref(&self) -> &labels::Words<K, P> {
        &self.inner
    }
}

impl<K: Kind, P: Part> Words<K, P> {
    waits! {
        "Words": set(key: &str, value: &str) -> Item<K>;
        "Words": delete(key: &str) -> Item<K>;
    }

    /// As [`Words::set_many`](crate::Words::set_many).
    ///
    /// # Errors
    /// As there.
    pub fn set_many<Key, Val>(&self, words: impl IntoIterator<Item = (Key, Val)>) -> Result<Item<K>>
    where
        Key: AsRef<str>,
        Val: AsRef<str>,
    {
        run(self.inner.set_many(words)).map(Mirror::mirror)
    }
}
