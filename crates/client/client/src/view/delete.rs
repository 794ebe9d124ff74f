//! Deletes objects.

use http::Method;

use super::View;
use crate::{error::Result, item::Item, kind::Object, options::DeleteOptions, transport::Call};

impl<K: Object> View<K> {
    /// Deletes an object. Succeeds if the object does not exist, or if it is a namespace
    /// that is already being deleted.
    ///
    /// # Errors
    /// [`Error::is_conflict`](crate::Error::is_conflict) if the options require another uid
    /// or resource version.
    pub async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<()> {
        let options_sent = options.body(&self.writing);
        let call = Call::new(Method::DELETE, self.object_path(name)?).json(&options_sent)?;
        match self.cluster().bytes(&call).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) if error.is_conflict() && self.may_be_terminating(options) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn may_be_terminating(&self, options: &DeleteOptions) -> bool {
        let gvk = &self.kind().gvk;
        let conditional = options.uid.is_some() || options.version.is_some();
        gvk.group.is_empty() && gvk.kind == "Namespace" && !conditional
    }

    /// Deletes all objects of the view.
    ///
    /// # Errors
    /// [`Error::Namespace`](crate::Error::Namespace) for a namespaced kind without a
    /// namespace: the API deletes only within one namespace.
    pub async fn delete_all(&self, options: &DeleteOptions) -> Result<()> {
        if self.kind().is_namespaced() && self.namespace().is_none() {
            return Err(self.needs_namespace());
        }
        let mut call = self.selection()?;
        call.method = Method::DELETE;
        self.cluster()
            .bytes(&call.json(&options.body(&self.writing))?)
            .await
            .map(|_| ())
    }
}

impl<K: Object> Item<K> {
    /// Deletes the object. Succeeds if it does not exist.
    ///
    /// # Errors
    /// The server rejects the request.
    pub async fn delete(&self, options: &DeleteOptions) -> Result<()> {
        self.view().delete(self.name(), options).await
    }
}
