//! The kinds that an engine serves. They are part of the state: a write that
//! creates or changes a kind is rolled back like any other, and readers see a
//! consistent snapshot of kinds and objects. Each stored kind has an index into
//! the tables of the state and one view for each version in which it is served.

mod custom;

use std::sync::Arc;

use longshore_builtin::{OtherVersion, PLAIN, find};
use longshore_model::{KindInfo, kind::BUILTIN};
use serde_json::Value;
use tokio::sync::watch;

use crate::{Error, autoscaling, custom::DefinitionSummary, events, rules::ViewRules, view::View};

/// Identifies a kind: an index into the tables of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KindId(pub(crate) usize);

/// A stored kind.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The kind in its storage version.
    pub(crate) info: Arc<KindInfo>,
    pub(crate) rules: ViewRules,
    /// The name of the kind in the store: `pods`, `jobs.batch`.
    pub(crate) store_name: String,
    /// The versions in which the kind is served.
    pub(crate) views: Vec<Arc<View>>,
    /// The revision of the kind's newest event; watches wait on it.
    pub(crate) revisions: Arc<watch::Sender<u64>>,
    /// Distinguishes kinds that reuse the same index: the uid of the
    /// definition, empty for built-in kinds.
    pub(crate) uid: Box<str>,
    /// True if the kind still exists.
    pub(crate) is_live: bool,
    /// The name of a custom kind's definition.
    pub(crate) definition: Option<Box<str>>,
    /// True if the definition is being deleted.
    pub(crate) is_terminating: bool,
    /// The definition's spec.
    pub(crate) definition_spec: Option<Arc<Value>>,
    /// The summary of the definition from which the kind was compiled.
    pub(crate) summary: Option<Arc<DefinitionSummary>>,
}

/// The views of a built-in kind.
fn views(info: &Arc<KindInfo>, rules: &ViewRules) -> Vec<Arc<View>> {
    let mut views = vec![Arc::new(View::stored(info.clone(), rules.clone()))];
    views.extend(rules.other_version.map(|version| {
        Arc::new(match version {
            OtherVersion::EventsV1 => View::event(Arc::new(events::info()), events::rules(rules)),
            OtherVersion::AutoscalingV1 => {
                View::autoscaler(Arc::new(autoscaling::info(info)), rules.clone())
            }
        })
    }));
    views
}

#[derive(Debug, Clone)]
pub(crate) struct Kinds {
    entries: Vec<Arc<Entry>>,
    /// A counter that grows with every change of the kinds.
    epoch: u64,
}

impl Kinds {
    pub(crate) fn builtin() -> Self {
        let entry = |info: &KindInfo| {
            let info = Arc::new(info.clone());
            let rules = ViewRules::from(find(&info.gvk.group, &info.gvk.kind).unwrap_or(&PLAIN));
            Arc::new(Entry {
                store_name: info.qualified(),
                views: views(&info, &rules),
                info,
                rules,
                revisions: Arc::default(),
                uid: "".into(),
                is_live: true,
                definition: None,
                is_terminating: false,
                definition_spec: None,
                summary: None,
            })
        };
        Self {
            entries: BUILTIN.iter().map(entry).collect(),
            epoch: 0,
        }
    }

    /// Kinds at the given indexes.
    pub(crate) fn from_entries(entries: Vec<Arc<Entry>>, epoch: u64) -> Self {
        Self { entries, epoch }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The kinds by index, including those that no longer exist.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.iter()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The existing kinds.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (KindId, &Arc<Entry>)> {
        self.entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.is_live)
            .map(|(index, entry)| (KindId(index), entry))
    }

    /// All served versions.
    pub(crate) fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.iter().flat_map(|(_, entry)| &entry.views)
    }

    /// Finds the index and the view of a kind.
    pub(crate) fn resolve(&self, info: &KindInfo) -> Result<(KindId, &Arc<View>), Error> {
        let gvk = &info.gvk;
        self.find_view(&gvk.group, &gvk.version, &info.plural)
            .ok_or_else(|| Error::NotFound(crate::Subject::new(info, "")))
    }

    /// Finds the index of a kind.
    pub(crate) fn id(&self, info: &KindInfo) -> Result<KindId, Error> {
        self.resolve(info).map(|(id, _)| id)
    }

    fn find_view(&self, group: &str, version: &str, plural: &str) -> Option<(KindId, &Arc<View>)> {
        self.iter().find_map(|(id, entry)| {
            let is_it = |view: &&Arc<View>| {
                let info = &view.info;
                info.plural == plural && info.gvk.group == group && info.gvk.version == version
            };
            Some((id, entry.views.iter().find(is_it)?))
        })
    }

    pub(crate) fn builtin_id(&self, group: &str, kind: &str) -> Option<KindId> {
        self.iter()
            .find(|(_, entry)| entry.info.gvk.group == group && entry.info.gvk.kind == kind)
            .map(|(id, _)| id)
    }

    pub(crate) fn by_store_name(&self, name: &str) -> Option<KindId> {
        self.iter()
            .find(|(_, entry)| entry.store_name == name)
            .map(|(id, _)| id)
    }

    pub(crate) fn entry(&self, id: KindId) -> &Entry {
        &self.entries[id.0]
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<View>> {
        self.find_view(group, version, plural).map(|(_, view)| view)
    }

    /// Adds a kind. Reuses the index of a removed kind if possible.
    pub(crate) fn add(&mut self, entry: Entry) -> KindId {
        self.epoch += 1;
        let free = self.entries.iter().position(|entry| !entry.is_live);
        match free {
            Some(index) => self.entries[index] = Arc::new(entry),
            None => self.entries.push(Arc::new(entry)),
        }
        KindId(free.unwrap_or(self.entries.len() - 1))
    }

    /// Records the definition summary that a kind corresponds to. This does not change the served
    /// kinds.
    pub(crate) fn set_summary(&mut self, id: KindId, summary: Arc<DefinitionSummary>) {
        Arc::make_mut(&mut self.entries[id.0]).summary = Some(summary);
    }

    /// Changes a kind.
    pub(crate) fn change(&mut self, id: KindId, change: impl FnOnce(&mut Entry)) {
        self.epoch += 1;
        change(Arc::make_mut(&mut self.entries[id.0]));
    }
}
