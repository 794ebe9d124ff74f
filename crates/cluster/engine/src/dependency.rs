//! Other objects on which the answer of a reviewer depends. A reviewed write is committed only if
//! they are unchanged; otherwise it is reviewed again.

use std::sync::Arc;

use longshore_model::KindInfo;

use crate::{ListRequest, list, object, state::State};

/// Objects that a reviewer has read, in the versions that it has seen.
#[derive(Debug, Clone)]
pub enum Dependency {
    /// All objects of some kinds, and the revision of their last change.
    Kinds(Vec<Arc<KindInfo>>, u64),
    /// An object.
    Object {
        /// The kind.
        kind: Arc<KindInfo>,
        /// The namespace; `None` for cluster-scoped kinds.
        namespace: Option<String>,
        /// The name.
        name: String,
        /// The revision; `None` if the object did not exist.
        revision: Option<u64>,
    },
    /// The objects of a list, by their revisions.
    List(Box<ListRequest>, Vec<u64>),
}

impl Dependency {
    /// Returns true if the objects are unchanged in a state.
    pub(crate) fn holds(&self, state: &State) -> bool {
        match self {
            Self::Kinds(kinds, last_change) => {
                let ids = kinds.iter().filter_map(|kind| state.kinds.id(kind).ok());
                let mut changes = ids.map(|id| state.table(id).last_change());
                changes.all(|change| change <= *last_change)
            }
            Self::Object {
                kind,
                namespace,
                name,
                revision,
            } => {
                let table = state.kinds.id(kind).ok().map(|id| state.table(id));
                let key = object::key(namespace.as_deref(), name);
                let found = table.and_then(|table| table.objects.get(&*key));
                found.map(|object| object.revision()) == *revision
            }
            Self::List(request, revisions) => list::list(state, request).is_ok_and(|page| {
                let found = page.items.iter().map(|object| object.revision());
                found.eq(revisions.iter().copied())
            }),
        }
    }
}
