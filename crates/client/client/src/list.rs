//! The results of list requests.

use crate::{
    cluster::{Cluster, Connection},
    item::Item,
    kind::Object,
};

/// The result of a list request: the items, and the resource version at which a watch can
/// start.
#[derive(Debug, Clone)]
pub struct List<K: Object, C: Connection = Cluster> {
    /// The items, in the server's order.
    ///
    /// An item that cannot be read does not affect the others. It keeps its position and its
    /// bytes, but has no name. Methods such as [`Item::check`] return an error with the list
    /// and the position.
    pub items: Vec<Item<K, C>>,
    /// The `resourceVersion` of the list.
    pub version: String,
}

impl<K: Object, C: Connection> List<K, C> {
    /// Iterates over the items by reference, in the server's order. `List` also implements
    /// `IntoIterator`, by reference and by value.
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
