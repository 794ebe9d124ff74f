//! Labels and annotations.

use super::{Cluster, Item, Mirror, run, waits};
use crate::{
    error::Result,
    kind::Object,
    labels::{self, Part},
};

/// Labels or annotations: see [`Words`](crate::Words).
pub type Words<K, P> = labels::Words<K, P, Cluster>;

impl<K: Object, P: Part> Words<K, P> {
    fn inner(&self) -> labels::Words<K, P> {
        labels::Words::new(self.item().inner())
    }

    waits! {
        "Words": set(key: &str, value: &str) -> Item<K>;
        "Words": delete(key: &str) -> Item<K>;
    }

    /// Like [`Words::set_many`](crate::Words::set_many).
    ///
    /// # Errors
    /// The errors of [`Words::set_many`](crate::Words::set_many).
    pub fn set_many<Key, Val>(&self, words: impl IntoIterator<Item = (Key, Val)>) -> Result<Item<K>>
    where
        Key: AsRef<str>,
        Val: AsRef<str>,
    {
        run(self.inner().set_many(words)).map(Mirror::mirror)
    }
}
