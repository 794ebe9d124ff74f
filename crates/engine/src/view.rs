//! Views: a version of a kind as clients see it. Most kinds are shown as they
//! are stored.

use std::sync::Arc;

use longshore_model::KindInfo;
use longshore_schema::{OwnedType, registry};

use crate::{Object, facts::KindFacts, json};

/// A kind in one of its versions.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) info: Arc<KindInfo>,
    /// What selectors and the machinery know of it.
    pub(crate) facts: KindFacts,
}

impl View {
    /// A kind shown as it is stored.
    pub(crate) fn stored(info: Arc<KindInfo>, facts: KindFacts) -> Self {
        Self { info, facts }
    }

    /// The type of its objects, as server-side apply walks it.
    pub(crate) fn owned_type(&self) -> OwnedType<'_> {
        registry()
            .root(&self.info.gvk)
            .map_or(OwnedType::Any, OwnedType::Builtin)
    }

    /// An object as this view shows it.
    pub(crate) fn present(&self, object: &Arc<Object>) -> Arc<Object> {
        object.clone()
    }

    /// What `present` shows, before it is written to bytes.
    pub(crate) fn shown(&self, object: json::Object) -> json::Object {
        object
    }

    /// An object of this view as it is stored.
    pub(crate) fn stored_form(&self, object: json::Object) -> json::Object {
        object
    }
}
