//! Items and lists.

use std::time::Duration;

use super::{Cluster, Mirror, run, waits};
use crate::{
    error::Result,
    item,
    kind::{Data, Object},
    list,
    options::{DeleteOptions, Patch},
    view::Scale,
};

/// A version of an object: see [`Item`](crate::Item).
pub type Item<K> = item::Item<K, Cluster>;

/// A list response: see [`List`](crate::List).
pub type List<K> = list::List<K, Cluster>;

impl<K: Object> Mirror for item::Item<K> {
    type Here = Item<K>;

    fn mirror(self) -> Item<K> {
        let cluster = self.cluster().clone().mirror();
        self.rebind(self.marker().clone(), cluster)
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
    /// The asynchronous item.
    pub(super) fn inner(&self) -> item::Item<K> {
        self.rebind(self.marker().clone(), self.cluster().as_ref().clone())
    }

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

    /// Like [`Item::replace`](crate::Item::replace).
    ///
    /// # Errors
    /// The errors of [`Item::replace`](crate::Item::replace).
    pub fn replace<Form>(&self, data: &impl Data<K, Form>) -> Result<Self> {
        run(self.inner().replace(data)).map(Mirror::mirror)
    }

    /// Like [`Item::wait`](crate::Item::wait).
    ///
    /// # Errors
    /// The errors of [`Item::wait`](crate::Item::wait).
    pub fn wait(
        &self,
        mut until: impl FnMut(&Self) -> bool + Send,
        timeout: Duration,
    ) -> Result<Self> {
        let until = |item: &item::Item<K>| until(&item.clone().mirror());
        run(self.inner().wait(until, timeout)).map(Mirror::mirror)
    }
}
