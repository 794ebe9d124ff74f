//! The kinds an engine serves, by a small number that finds their table.

use std::sync::Arc;

use longshore_model::{KindInfo, kind::BUILTIN};

use crate::{
    Error,
    facts::{self, Facts},
};

/// Which kind: an index into the tables of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KindId(pub(crate) usize);

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) info: Arc<KindInfo>,
    pub(crate) facts: &'static Facts,
    /// The name of the kind in the store: `pods`, `jobs.batch`.
    pub(crate) store_name: String,
}

#[derive(Debug)]
pub(crate) struct Kinds {
    entries: Vec<Entry>,
}

impl Kinds {
    pub(crate) fn builtin() -> Self {
        let entry = |info: &KindInfo| Entry {
            facts: facts::of(&info.gvk.group, &info.gvk.kind),
            store_name: info.qualified(),
            info: Arc::new(info.clone()),
        };
        Self {
            entries: BUILTIN.iter().map(entry).collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (KindId, &Entry)> {
        self.entries
            .iter()
            .enumerate()
            .map(|(index, entry)| (KindId(index), entry))
    }

    /// The number of a kind.
    pub(crate) fn id(&self, info: &KindInfo) -> Result<KindId, Error> {
        self.entries
            .iter()
            .position(|entry| {
                entry.info.plural == info.plural && entry.info.gvk.group == info.gvk.group
            })
            .map(KindId)
            .ok_or_else(|| Error::NotFound(crate::Subject::new(info, "")))
    }

    pub(crate) fn builtin_id(&self, group: &str, kind: &str) -> Option<KindId> {
        self.entries
            .iter()
            .position(|entry| entry.info.gvk.group == group && entry.info.gvk.kind == kind)
            .map(KindId)
    }

    pub(crate) fn by_store_name(&self, name: &str) -> Option<KindId> {
        self.entries
            .iter()
            .position(|entry| entry.store_name == name)
            .map(KindId)
    }

    pub(crate) fn entry(&self, id: KindId) -> &Entry {
        &self.entries[id.0]
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<KindInfo>> {
        self.entries
            .iter()
            .map(|entry| &entry.info)
            .find(|info| {
                info.plural == plural && info.gvk.group == group && info.gvk.version == version
            })
            .cloned()
    }
}
