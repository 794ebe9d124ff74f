//! Labels and annotations.

use std::ops::Deref;

use super::{Item, Mirror, run, waits};
use crate::{
    error::Result,
    kind::Object,
    labels::{self, Annotations, Labels, Part},
};

impl<K: Object> Item<K> {
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
}

/// Labels or annotations: see [`Words`](crate::Words).
#[derive(Debug, Clone)]
pub struct Words<K: Object, P: Part> {
    inner: labels::Words<K, P>,
}

impl<K: Object, P: Part> Mirror for labels::Words<K, P> {
    type Here = Words<K, P>;

    fn mirror(self) -> Words<K, P> {
        Words { inner: self }
    }
}

impl<K: Object, P: Part> Deref for Words<K, P> {
    type Target = labels::Words<K, P>;

    fn deref(&self) -> &labels::Words<K, P> {
        &self.inner
    }
}

impl<K: Object, P: Part> Words<K, P> {
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
