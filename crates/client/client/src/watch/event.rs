//! The events of a watch.

use crate::{
    cluster::{Cluster, Connection},
    item::Item,
    kind::Object,
    list::List,
};

/// A change that a [`Watch`](crate::Watch) received.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::{Patch, WatchEvent};
/// use serde_json::json;
/// let maps = cluster.configmaps().in_namespace("default")?;
/// let mut watch = maps.watch().await?;
/// maps.create(&json!({"metadata": {"name": "a"}})).await?;
/// maps.patch("a", &Patch::merge(json!({"data": {"colour": "red"}}))).await?;
/// for _ in 0..2 {
///     let event = watch.next(None).await?;
///     assert_eq!(event.item().map(|map| map.name()), Some("a"));
///     match event {
///         WatchEvent::Added(map) => assert!(map.data()?.is_empty()),
///         WatchEvent::Modified(map) => assert_eq!(map.data()?["colour"], "red"),
///         WatchEvent::Deleted(map) => println!("{} is gone", map.name()),
///         WatchEvent::Resync(list) => println!("there are {} now", list.items.len()),
///     }
/// }
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
pub enum WatchEvent<K: Object, C: Connection = Cluster> {
    /// The object was created, or now matches the selectors.
    Added(Item<K, C>),
    /// The object was changed.
    Modified(Item<K, C>),
    /// The object was deleted, or no longer matches; its last state.
    Deleted(Item<K, C>),
    /// The resource version expired, so events were missed. Contains the current state of
    /// all objects; other objects no longer exist.
    Resync(List<K, C>),
}

impl<K: Object, C: Connection> WatchEvent<K, C> {
    /// The object of a single change.
    #[must_use]
    pub fn item(&self) -> Option<&Item<K, C>> {
        match self {
            Self::Added(item) | Self::Modified(item) | Self::Deleted(item) => Some(item),
            Self::Resync(_) => None,
        }
    }
}
