//! The kinds an engine serves. They are part of the state, so that a write that
//! makes or changes a kind is rolled back like any other, and a reader sees a
//! consistent snapshot of kinds and objects. Each stored kind has a number that
//! finds its table, and one view or more: the versions it is served in.

mod custom;

use std::sync::Arc;

use longshore_model::{KindInfo, kind::BUILTIN};
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    Error, autoscaling,
    custom::Outline,
    events,
    facts::{self, KindFacts},
    view::View,
};

/// Which kind: an index into the tables of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KindId(pub(crate) usize);

/// A stored kind.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The kind as it is stored.
    pub(crate) info: Arc<KindInfo>,
    pub(crate) facts: KindFacts,
    /// The name of the kind in the store: `pods`, `jobs.batch`.
    pub(crate) store_name: String,
    /// The versions it is served in.
    pub(crate) views: Vec<Arc<View>>,
    /// The revision of its newest event; watches wait on it.
    pub(crate) news: Arc<watch::Sender<u64>>,
    /// Distinguishes kinds that had the same number one after another: the
    /// uid of the definition, empty for built-in kinds.
    pub(crate) uid: Box<str>,
    /// Whether it is still there.
    pub(crate) live: bool,
    /// The name of the definition, of a custom kind.
    pub(crate) definition: Option<Box<str>>,
    /// Whether the definition is being deleted.
    pub(crate) terminating: bool,
    /// The definition's spec.
    pub(crate) made_of: Option<Arc<Value>>,
    /// The definition as it was when the kind was made of it.
    pub(crate) outline: Option<Arc<Outline>>,
}

/// The views of a built-in kind.
fn views(info: &Arc<KindInfo>, facts: &KindFacts) -> Vec<Arc<View>> {
    let mut views = vec![Arc::new(View::stored(info.clone(), facts.clone()))];
    if info.gvk.group.is_empty() && info.gvk.kind == "Event" {
        views.push(Arc::new(View::event(
            Arc::new(events::info()),
            events::facts(),
        )));
    }
    if let Some(older) = autoscaling::info(info) {
        views.push(Arc::new(View::autoscaler(Arc::new(older), facts.clone())));
    }
    views
}

#[derive(Debug, Clone)]
pub(crate) struct Kinds {
    entries: Vec<Arc<Entry>>,
    /// Grows with every change of the kinds.
    epoch: u64,
}

impl Kinds {
    pub(crate) fn builtin() -> Self {
        let entry = |info: &KindInfo| {
            let info = Arc::new(info.clone());
            let facts = KindFacts::from(facts::of(&info.gvk.group, &info.gvk.kind));
            Arc::new(Entry {
                store_name: info.qualified(),
                views: views(&info, &facts),
                info,
                facts,
                news: Arc::default(),
                uid: "".into(),
                live: true,
                definition: None,
                terminating: false,
                made_of: None,
                outline: None,
            })
        };
        Self {
            entries: BUILTIN.iter().map(entry).collect(),
            epoch: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The kinds that are there.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (KindId, &Arc<Entry>)> {
        self.entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.live)
            .map(|(index, entry)| (KindId(index), entry))
    }

    /// The versions that are served.
    pub(crate) fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.iter().flat_map(|(_, entry)| &entry.views)
    }

    /// The number and the view of a kind.
    pub(crate) fn resolve(&self, info: &KindInfo) -> Result<(KindId, &Arc<View>), Error> {
        let gvk = &info.gvk;
        let found = self
            .find_view(&gvk.group, &gvk.version, &info.plural)
            .ok_or_else(|| Error::NotFound(crate::Subject::new(info, "")))?;
        found.1.check_usable()?;
        Ok(found)
    }

    /// The number of a kind.
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

    /// Puts a kind in, in the place of one that is gone if there is such.
    pub(crate) fn add(&mut self, entry: Entry) -> KindId {
        self.epoch += 1;
        let free = self.entries.iter().position(|entry| !entry.live);
        match free {
            Some(index) => self.entries[index] = Arc::new(entry),
            None => self.entries.push(Arc::new(entry)),
        }
        KindId(free.unwrap_or(self.entries.len() - 1))
    }

    /// Notes of which form of its definition a kind is. Nothing that is served
    /// changes by that.
    pub(crate) fn note(&mut self, id: KindId, outline: Arc<Outline>) {
        Arc::make_mut(&mut self.entries[id.0]).outline = Some(outline);
    }

    /// Changes a kind.
    pub(crate) fn change(&mut self, id: KindId, change: impl FnOnce(&mut Entry)) {
        self.epoch += 1;
        change(Arc::make_mut(&mut self.entries[id.0]));
    }
}
