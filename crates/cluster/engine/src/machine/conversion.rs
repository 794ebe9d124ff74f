//! Objects of custom kinds whose definition has a conversion webhook. Such an object stays in the
//! version in which it was written. A write reads it in the version of its request, and stores it
//! in the storage version. Conversions are done outside of the engine, like
//! [reviews](super::reviews).

use serde_json::Value;

use super::{JsonObject, Transaction, reviews};
use crate::{Error, Object, view::View};

impl Transaction<'_> {
    /// The stored object in the form that a write to a version uses: converted to the version if
    /// the kind has a conversion webhook, otherwise as stored.
    pub(super) fn before(&self, view: &View, old: &Object) -> Result<JsonObject, Error> {
        let object = old.map();
        if view.conversion().is_none() {
            return Ok(object);
        }
        let object = self.converted(view, object, &view.info.api_version())?;
        Ok(view.convert(object))
    }

    /// The stored object in the form that reviews show.
    pub(super) fn shown(&self, view: &View, old: &std::sync::Arc<Object>) -> Result<Value, Error> {
        if view.conversion().is_none() {
            return Ok(view.present(old).value());
        }
        let object = reviews::with_managed(self.before(view, old)?, old.managed());
        Ok(Value::Object(object))
    }

    /// The object in its stored form, if it differs: in the storage version, without the fields
    /// that this version does not have.
    pub(super) fn for_storage(
        &self,
        view: &View,
        object: &JsonObject,
    ) -> Result<Option<JsonObject>, Error> {
        let Some(conversion) = view.conversion() else {
            return Ok(view.prune_for_storage(object));
        };
        let storage = &conversion.stored_as;
        if *storage == view.info.api_version() {
            return Ok(None);
        }
        let converted = self.converted(view, object.clone(), storage)?;
        Ok(Some(
            view.prune_for_storage(&converted).unwrap_or(converted),
        ))
    }

    /// Returns true if an object is stored in an older storage version. A write then stores it
    /// again even if it changes no field.
    pub(super) fn is_outdated(&self, view: &View, old: &Object) -> bool {
        view.conversion().is_some_and(|conversion| {
            let version = old.map().remove("apiVersion");
            version.is_none_or(|version| version != *conversion.stored_as)
        })
    }

    fn converted(
        &self,
        view: &View,
        object: JsonObject,
        version: &str,
    ) -> Result<JsonObject, Error> {
        if object.get("apiVersion").is_some_and(|own| own == version) {
            return Ok(object);
        }
        match self.reviews() {
            Some(reviews) => reviews.convert(object, version),
            None => Err(view.not_converted()),
        }
    }
}
