//! Namespace and name, the keys of work queues.

use std::fmt;

use longshore_client::{Item, Object};

/// Namespace and name of a namespaced object.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
}

impl Key {
    /// The key of an item.
    pub(crate) fn of<K: Object>(item: &Item<K>) -> Self {
        Self::new(item.namespace().unwrap_or_default(), item.name())
    }

    /// A key from its parts.
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
