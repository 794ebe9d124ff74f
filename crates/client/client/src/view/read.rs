//! Reads single objects.

use std::sync::Arc;

use super::View;
use crate::{error::Result, item::Item, kind::Object, transport::Call};
use longshore_snapshots::Snapshot;

impl<K: Object> View<K> {
    pub(super) fn item(&self, body: &bytes::Bytes, request: &str) -> Result<Item<K>> {
        Item::read(self.cluster.clone(), self.kind.clone(), body, request)
    }

    pub(crate) fn wrap(&self, snapshot: Arc<Snapshot>) -> Item<K> {
        Item::new(self.cluster.clone(), self.kind.clone(), snapshot)
    }

    /// Reads one object.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound);
    /// [`Error::Namespace`](crate::Error::Namespace) if the view has no namespace;
    /// [`Error::Invalid`](crate::Error::Invalid) for an empty name.
    pub async fn fetch(&self, name: &str) -> Result<Item<K>> {
        let call = Call::get(self.object_path(name)?);
        let body = self.cluster.bytes(&call).await?;
        self.item(&body, &call.name())
    }

    /// Reads one object. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// The same as [`View::fetch`], save for the object's absence.
    pub async fn find(&self, name: &str) -> Result<Option<Item<K>>> {
        match self.fetch(name).await {
            Ok(item) => Ok(Some(item)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<K: Object> Item<K> {
    /// The view of the object's kind in its namespace.
    #[must_use]
    pub fn view(&self) -> View<K> {
        let view = View::new(self.cluster().clone(), self.marker().clone());
        view.with_namespace(self.namespace().map(str::to_owned))
    }

    /// Reads the latest version of the object.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) if it was deleted.
    pub async fn fetch(&self) -> Result<Self> {
        self.view().fetch(self.name()).await
    }
}
