//! Namespace and name: what work queues are keyed by.

use std::fmt;

use longshore_client::{Item, Kind};

/// The place of an object of a namespaced kind.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
}

impl Key {
    /// Of an item.
    pub(crate) fn of<K: Kind>(item: &Item<K>) -> Self {
        Self::new(item.namespace().unwrap_or_default(), item.name())
    }

    /// From its parts.
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
