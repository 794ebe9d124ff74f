//! Namespaces and names, the keys of work queues.

use std::fmt;

use longshore_client::{Item, Object};

/// The namespace and name of an object.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The namespace; empty for cluster-scoped objects.
    pub(crate) namespace: String,
    /// The name.
    pub(crate) name: String,
}

impl Key {
    /// Returns the key of an item.
    pub(crate) fn of<K: Object>(item: &Item<K>) -> Self {
        Self::new(item.namespace().unwrap_or_default(), item.name())
    }

    /// Creates a key from a namespace and a name.
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
