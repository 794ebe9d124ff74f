//! Lists of items.

use crate::{
    cluster::{Cluster, Connection},
    item::Item,
    kind::Object,
};

/// A list response: items, and the version of the collection, from which a
/// watch can go on.
#[derive(Debug, Clone)]
pub struct List<K: Object, C: Connection = Cluster> {
    /// The items, in the server's order.
    ///
    /// One that cannot be read does not spoil the others: it stands in its
    /// place, has its bytes but no name, and what is asked of it is an error
    /// that names the list and its position, as of [`Item::check`].
    pub items: Vec<Item<K, C>>,
    /// The collection's resourceVersion.
    pub version: String,
}

impl<K: Object, C: Connection> List<K, C> {
    /// The items by reference, in the server's order. A list is a loop's subject as
    /// well, by reference or by value.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// let nodes = cluster.nodes().list().await?;
    /// let names: Vec<&str> = nodes.iter().map(|node| node.name()).collect();
    /// for (node, name) in (&nodes).into_iter().zip(names) {
    ///     assert_eq!(node.name(), name);
    /// }
    /// # Ok(()) });
    /// ```
    pub fn iter(&self) -> std::slice::Iter<'_, Item<K, C>> {
        self.items.iter()
    }
}

impl<'a, K: Object, C: Connection> IntoIterator for &'a List<K, C> {
    type Item = &'a Item<K, C>;
    type IntoIter = std::slice::Iter<'a, Item<K, C>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: Object, C: Connection> IntoIterator for List<K, C> {
    type Item = Item<K, C>;
    type IntoIter = std::vec::IntoIter<Item<K, C>>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}
