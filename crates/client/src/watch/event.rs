//! What a watch reports.

use crate::{
    cluster::{Cluster, Connection},
    item::Item,
    kind::Object,
    list::List,
};

/// A change that a [`Watch`](crate::Watch) saw.
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
    /// The object is new, or new to the view's selectors.
    Added(Item<K, C>),
    /// The object has changed.
    Modified(Item<K, C>),
    /// The object is gone, or no longer matches; its last state.
    Deleted(Item<K, C>),
    /// The server no longer has the history since the last event: here is
    /// everything as it is now. What is not in it is gone.
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
