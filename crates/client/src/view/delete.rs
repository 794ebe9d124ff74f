//! Deletes objects.

use http::Method;

use super::View;
use crate::{error::Result, item::Item, kind::Object, options::DeleteOptions, transport::Call};

impl<K: Object> View<K> {
    /// Deletes an object. That it is gone already is no error, nor that a
    /// namespace is on its way already.
    ///
    /// # Errors
    /// [`Error::is_conflict`](crate::Error::is_conflict) when the options ask for another uid or
    /// version.
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

    /// Deletes every object of the view.
    ///
    /// # Errors
    /// [`Error::Namespace`](crate::Error::Namespace) for a namespaced kind without a namespace: the
    /// API deletes in one namespace at a time.
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
    /// Deletes the object; that it is gone already is no error.
    ///
    /// # Errors
    /// As the server refuses.
    pub async fn delete(&self, options: &DeleteOptions) -> Result<()> {
        self.view().delete(self.name(), options).await
    }
}
