//! Reads of the published state.

use std::sync::Arc;

use longshore_model::{FieldSelector, KindInfo};

use super::Engine;
use crate::{
    ConvertedFields, Error, ListRequest, Object, Page, ReadVersion, Subject, Watch, WatchRequest,
    list, machine, object, select, state::too_large,
};

impl Engine {
    /// Returns the `/scale` subresource of an object: a `Scale` of
    /// autoscaling/v1.
    ///
    /// # Errors
    /// Same as [`Engine::get`]; [`Error::NotFound`] for kinds without a scale.
    pub fn get_scale(
        &self,
        kind: &KindInfo,
        namespace: Option<&str>,
        name: &str,
        at: ReadVersion,
    ) -> Result<Arc<Object>, Error> {
        let view = self.view(kind)?;
        let object = self
            .stored(kind, namespace, name, at)
            .map_err(|error| match error {
                // For built-in kinds, the error names the subresource.
                Error::NotFound(subject) if view.custom_kind().is_none() => {
                    Error::NotFound(subject.subresource("scale"))
                }
                error => error,
            })?;
        machine::scale_of(&view, &object)
    }

    /// The newest revision.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.state().revision
    }

    /// Gets one object. An object of a definition with a conversion webhook is
    /// returned in the version in which it is stored, also by lists, watches and
    /// writes: the engine does not call webhooks.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::VersionTooLarge`] and [`Error::Expired`]
    /// if the requested version is not available.
    pub fn get(
        &self,
        kind: &KindInfo,
        namespace: Option<&str>,
        name: &str,
        at: ReadVersion,
    ) -> Result<Arc<Object>, Error> {
        let object = self.stored(kind, namespace, name, at)?;
        Ok(self.view(kind)?.present(&object))
    }

    /// Checks that an object may be created in a namespace. The object need not be stored.
    ///
    /// # Errors
    /// The namespace does not exist or is terminating.
    pub fn check_namespace(
        &self,
        kind: &KindInfo,
        namespace: &str,
        name: &str,
    ) -> Result<(), Error> {
        machine::check_namespace(&self.state(), kind, namespace, name)
    }

    fn stored(
        &self,
        kind: &KindInfo,
        namespace: Option<&str>,
        name: &str,
        at: ReadVersion,
    ) -> Result<Arc<Object>, Error> {
        let state = self.state();
        let id = state.kinds.id(kind)?;
        let key = object::key(namespace.filter(|_| kind.is_namespaced()), name);
        let missing = || Error::NotFound(Subject::new(kind, name));
        let object = match at {
            ReadVersion::AtLeast(asked) | ReadVersion::Exact(asked) if asked > state.revision => {
                return Err(too_large(asked, state.revision));
            }
            ReadVersion::Exact(asked) => state
                .at(id, asked)
                .ok_or_else(|| Error::Expired {
                    message: format!("The provided resource version is too old: {asked}"),
                    cursor: None,
                })?
                .get(&*key)
                .cloned(),
            _ => state.table(id).objects.get(&*key).cloned(),
        };
        object.ok_or_else(missing)
    }

    /// Lists a page of objects.
    ///
    /// # Errors
    /// [`Error::BadRequest`] for an unknown field in the selector or an invalid
    /// `continue` token; [`Error::Expired`], [`Error::VersionTooLarge`].
    pub fn list(&self, request: &ListRequest) -> Result<Page, Error> {
        Ok(self.listed(request)?.1)
    }

    /// The terms of a field selector that lists and watches of a kind do not evaluate, so that the
    /// calling code must; `None` if all terms are evaluated.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the kind is not served.
    pub fn converted_fields(
        &self,
        kind: &KindInfo,
        fields: &FieldSelector,
    ) -> Result<Option<ConvertedFields>, Error> {
        Ok(ConvertedFields::of(&self.view(kind)?, fields))
    }

    /// The `continue` token of a list at a revision that ends with an object.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the kind is not served.
    pub fn cursor_after(
        &self,
        request: &ListRequest,
        revision: u64,
        last: &Object,
    ) -> Result<String, Error> {
        let view = self.view(&request.kind)?;
        let prefix = select::prefix(&view, request.namespace.as_deref());
        Ok(list::cursor_after(&prefix, revision, last))
    }

    /// The number of objects of a kind in all namespaces. It is an upper bound for the number of
    /// objects that a list or the start of a watch scans.
    #[must_use]
    pub fn count(&self, kind: &KindInfo) -> usize {
        let state = self.state();
        let found = state.kinds.resolve(kind);
        found.map_or(0, |(id, _)| state.table(id).objects.len())
    }

    /// A number that grows with every change of an object of these kinds. It may also grow without
    /// a change.
    #[must_use]
    pub fn last_change(&self, kinds: &[Arc<KindInfo>]) -> u64 {
        let state = self.state();
        let ids = kinds.iter().filter_map(|kind| state.kinds.id(kind).ok());
        let changes = ids.map(|id| state.table(id).last_change());
        changes.max().unwrap_or_default()
    }

    /// Starts a watch.
    ///
    /// # Errors
    /// [`Error::BadRequest`] for an unknown field in the selector;
    /// [`Error::Expired`] if the start revision is compacted.
    pub fn watch(&self, request: &WatchRequest) -> Result<Watch, Error> {
        Watch::start(self.inner.shared.clone(), request)
    }

    /// Lists a page of objects as stored, and as presented.
    pub(crate) fn listed(&self, request: &ListRequest) -> Result<(Vec<Arc<Object>>, Page), Error> {
        let state = self.state();
        let mut page = list::list(&state, request)?;
        let (_, view) = state.kinds.resolve(&request.kind)?;
        let stored = page.items.clone();
        for object in &mut page.items {
            *object = view.present(object);
        }
        Ok((stored, page))
    }
}
