//! The state at one revision: persistent tables of objects, and the recent
//! events of each kind. A clone is cheap and immutable, so it serves as a
//! snapshot for readers and as a savepoint to which writes roll back.

use std::{ops::Bound, sync::Arc};

use imbl::{OrdMap, Vector};
use jiff::SignedDuration;

use crate::{
    Error, Object,
    custom::DefinitionSummary,
    kinds::{Entry, KindId, Kinds},
    object::Objects,
    snapshots::Snapshots,
};

/// A write in the form that watches report.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) before: Option<Arc<Object>>,
    /// The new state, or for a deletion the last state with the resource
    /// version of the deletion.
    pub(crate) after: Arc<Object>,
    pub(crate) deleted: bool,
}

impl Event {
    /// The memory that only this event keeps alive, which is taken by states that are no longer
    /// current.
    fn retained_bytes(&self) -> usize {
        let deleted = if self.deleted {
            self.after.bytes().len()
        } else {
            0
        };
        self.before
            .as_ref()
            .map_or(0, |object| object.bytes().len())
            + deleted
    }
}

/// The objects of a kind and their recent events.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub(crate) objects: Objects,
    log: Vector<Event>,
    log_bytes: usize,
    /// Events up to this revision are no longer in the log.
    pub(crate) compacted: u64,
    snapshots: Snapshots,
}

impl Table {
    /// The events after a revision, oldest first; `None` if some of these events are compacted.
    pub(crate) fn events_after(&self, revision: u64) -> Option<impl Iterator<Item = &Event>> {
        if revision < self.compacted {
            return None;
        }
        let first = self.index_after(revision);
        Some(self.log.focus().narrow(first..).into_iter())
    }

    /// The index in the log of the first event after a revision.
    fn index_after(&self, revision: u64) -> usize {
        let (mut low, mut high) = (0, self.log.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.log[middle].revision <= revision {
                low = middle + 1
            } else {
                high = middle
            }
        }
        low
    }

    /// Returns true if the log contains events at or before a revision.
    fn has_until(&self, revision: u64) -> bool {
        self.log
            .front()
            .is_some_and(|event| event.revision <= revision)
    }

    /// Drops the events up to a revision.
    fn drop_history_until(&mut self, revision: u64) {
        let kept = self.log.split_off(self.index_after(revision));
        let dropped = std::mem::replace(&mut self.log, kept);
        if let Some(newest) = dropped.back() {
            self.log_bytes -= dropped.iter().map(Event::retained_bytes).sum::<usize>();
            self.compacted = newest.revision;
            self.snapshots.drop_before(self.compacted);
        }
    }

    /// The revision of the newest event in the log; 0 if the log is empty.
    pub(crate) fn newest(&self) -> u64 {
        self.log.back().map_or(0, |event| event.revision)
    }

    /// The revision of the last change, or a later one if its event is no longer
    /// in the log.
    pub(crate) fn last_change(&self) -> u64 {
        self.newest().max(self.compacted)
    }

    /// The objects at a revision; `None` if it is compacted.
    fn at(&self, revision: u64) -> Option<Objects> {
        if revision < self.compacted {
            return None;
        }
        if revision >= self.newest() {
            return Some(self.objects.clone());
        }
        if let Some(objects) = self.snapshots.find(revision) {
            return Some(objects);
        }
        let mut objects = self.objects.clone();
        for event in self
            .log
            .iter()
            .rev()
            .take_while(|event| event.revision > revision)
        {
            match &event.before {
                Some(before) => objects.insert(before.key().clone(), before.clone()),
                None => objects.remove(event.after.key()),
            };
        }
        self.snapshots.insert(revision, &objects);
        Some(objects)
    }
}

/// Limits of the history of each kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
    pub(crate) time: SignedDuration,
}

/// The whole state at one revision.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) revision: u64,
    /// Lists at older revisions have expired, even for kinds without later
    /// events, so that `continue` tokens of all kinds have the same lifetime.
    /// Watches depend only on the events of their table.
    compacted: u64,
    pub(crate) kinds: Arc<Kinds>,
    tables: Vec<Arc<Table>>,
    /// Objects whose kind was removed without them, by the kind's name in the
    /// store. As in Kubernetes, they reappear when the kind is added again.
    left_behind: OrdMap<String, Objects>,
    /// A summary of each definition by name.
    pub(crate) definitions: OrdMap<Arc<str>, Arc<DefinitionSummary>>,
    /// The progress of object deletions for kinds whose definition is being
    /// deleted.
    pub(crate) cleaning: OrdMap<KindId, Cleaning>,
    /// The revision of the last change of objects that configure admission; 0 if they have never
    /// changed.
    pub(crate) admission_revision: u64,
    /// True if each new namespace gets its service account.
    pub(crate) creates_accounts: bool,
    /// True if the objects of deleted definitions stay until [`Engine::end_definitions`].
    ///
    /// [`Engine::end_definitions`]: crate::Engine::end_definitions
    pub(crate) defers_cleanup: bool,
}

/// The progress of deleting all objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cleaning {
    /// Objects up to this key are marked for deletion.
    UpTo(Arc<str>),
    /// All objects are marked for deletion.
    Begun,
}

impl State {
    /// Creates a state without objects whose history is compacted up to
    /// `revision`.
    pub(crate) fn new(kinds: Kinds, revision: u64) -> Self {
        Self {
            revision,
            compacted: revision,
            tables: (0..kinds.len()).map(|_| empty(revision)).collect(),
            kinds: Arc::new(kinds),
            left_behind: OrdMap::new(),
            definitions: OrdMap::new(),
            cleaning: OrdMap::new(),
            admission_revision: 0,
            creates_accounts: true,
            defers_cleanup: false,
        }
    }

    /// Sets the revision of a loaded state; its history starts there.
    pub(crate) fn start_at(&mut self, revision: u64) {
        self.revision = revision;
        self.compacted = revision;
        for table in &mut self.tables {
            Arc::make_mut(table).compacted = revision;
        }
    }

    /// Adds a kind without history. It takes over the objects that an earlier
    /// kind of the same name left behind.
    pub(crate) fn add_kind(&mut self, entry: Entry) -> KindId {
        let objects = self.left_behind.remove(&entry.store_name);
        let id = Arc::make_mut(&mut self.kinds).add(entry);
        let mut table = empty(self.revision);
        Arc::make_mut(&mut table).objects = objects.unwrap_or_default();
        match self.tables.get_mut(id.0) {
            Some(place) => *place = table,
            None => self.tables.push(table),
        }
        id
    }

    /// Adds a table for a kind that is no longer served.
    pub(crate) fn add_table(&mut self) {
        self.tables.push(empty(self.revision));
    }

    /// Changes a kind.
    pub(crate) fn change_kind(&mut self, id: KindId, change: impl FnOnce(&mut Entry)) {
        Arc::make_mut(&mut self.kinds).change(id, change);
    }

    /// Removes a kind. Its last events remain readable.
    pub(crate) fn end_kind(&mut self, id: KindId) {
        let objects = self.table(id).objects.clone();
        if !objects.is_empty() {
            let name = self.kinds.entry(id).store_name.clone();
            self.left_behind.insert(name, objects);
        }
        self.change_kind(id, |entry| entry.is_live = false);
        self.cleaning.remove(&id);
    }

    /// The objects of a built-in kind in a namespace, ordered by name.
    pub(crate) fn in_namespace<'a>(
        &'a self,
        group: &str,
        kind: &str,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        let table = self.kinds.builtin_id(group, kind).map(|id| self.table(id));
        let table = table.filter(|table| !table.objects.is_empty());
        let found = table.map(|table| {
            let prefix = format!("{namespace}/");
            let from = (Bound::Included(prefix.as_str()), Bound::Unbounded);
            let objects = table.objects.range::<_, str>(from);
            objects.take_while(move |(key, _)| key.starts_with(&*prefix))
        });
        found.into_iter().flatten().map(|(_, object)| object)
    }

    /// Records the definition summary of a kind when the kind does not change.
    pub(crate) fn set_definition_summary(&mut self, id: KindId, summary: Arc<DefinitionSummary>) {
        Arc::make_mut(&mut self.kinds).set_summary(id, summary);
    }

    /// Returns true if a kind has the same objects and events in both states.
    pub(crate) fn has_same_table(&self, other: &Self, kind: KindId) -> bool {
        Arc::ptr_eq(&self.tables[kind.0], &other.tables[kind.0])
    }

    /// Takes over the kinds of `end`, which was derived from `base`. This state
    /// must have the same kinds as `base`.
    pub(crate) fn adopt_kinds(&mut self, base: &Self, end: &Self) {
        for (index, theirs) in end.tables.iter().enumerate() {
            let id = KindId(index);
            let is_new =
                index >= base.tables.len() || base.kinds.entry(id).uid != end.kinds.entry(id).uid;
            if is_new {
                let mut table = empty(self.revision);
                Arc::make_mut(&mut table).objects = theirs.objects.clone();
                match self.tables.get_mut(index) {
                    Some(place) => *place = table,
                    None => self.tables.push(table),
                }
            }
        }
        self.kinds = end.kinds.clone();
        self.left_behind = end.left_behind.clone();
        self.definitions = end.definitions.clone();
        self.cleaning = end.cleaning.clone();
        for (id, entry) in self.kinds.iter() {
            for (place, view) in entry.views.iter().enumerate() {
                let known = (id.0 < base.kinds.len())
                    .then(|| base.kinds.entry(id).views.get(place))
                    .flatten();
                if known.is_none_or(|known| !Arc::ptr_eq(known, view)) {
                    view.set_since(self.revision);
                }
            }
        }
    }

    pub(crate) fn table(&self, kind: KindId) -> &Table {
        &self.tables[kind.0]
    }

    /// Adds an object without an event while the store is opened.
    pub(crate) fn load(&mut self, kind: KindId, object: Arc<Object>) {
        if self.configures_admission(kind) {
            self.admission_revision = self.admission_revision.max(object.revision());
        }
        let table = Arc::make_mut(&mut self.tables[kind.0]);
        table.objects.insert(object.key().clone(), object);
    }

    /// Adds an object of an unknown kind while the store is opened.
    pub(crate) fn load_left_behind(&mut self, store_name: &str, object: Arc<Object>) {
        let objects = self.left_behind.entry(store_name.to_owned()).or_default();
        objects.insert(object.key().clone(), object);
    }

    fn configures_admission(&self, kind: KindId) -> bool {
        &*self.kinds.entry(kind).info.gvk.group == "admissionregistration.k8s.io"
    }

    /// Applies one event, which must have the next revision.
    pub(crate) fn apply(&mut self, kind: KindId, event: Event, limits: Limits) {
        debug_assert_eq!(event.revision, self.revision + 1);
        self.revision = event.revision;
        if self.configures_admission(kind) {
            self.admission_revision = event.revision;
        }
        let table = Arc::make_mut(&mut self.tables[kind.0]);
        if event.deleted {
            table.objects.remove(event.after.key());
        } else {
            table
                .objects
                .insert(event.after.key().clone(), event.after.clone());
        }
        table.log_bytes += event.retained_bytes();
        table.log.push_back(event);
        while table.log.len() > limits.events || table.log_bytes > limits.bytes {
            let Some(oldest) = table.log.pop_front() else {
                break;
            };
            table.log_bytes -= oldest.retained_bytes();
            table.compacted = oldest.revision;
            table.snapshots.drop_before(table.compacted);
        }
    }

    /// The objects of a kind at a revision; `None` if it is compacted.
    pub(crate) fn at(&self, kind: KindId, revision: u64) -> Option<Objects> {
        if revision < self.compacted {
            return None;
        }
        self.table(kind).at(revision)
    }

    /// Drops the events up to a revision.
    pub(crate) fn drop_history_until(&mut self, revision: u64) {
        self.compacted = self.compacted.max(revision);
        for table in &mut self.tables {
            if table.has_until(revision) {
                Arc::make_mut(table).drop_history_until(revision);
            }
        }
    }

    /// Replaces each object, and drops all events. `None` if an object cannot be replaced.
    pub(crate) fn replace_objects(
        &mut self,
        mut replace: impl FnMut(&Object) -> Option<Object>,
    ) -> Option<()> {
        self.expire();
        for table in &mut self.tables {
            if table.objects.is_empty() {
                continue;
            }
            let objects = table.objects.iter();
            let objects =
                objects.map(|(key, object)| Some((key.clone(), Arc::new(replace(object)?))));
            let objects: Option<Objects> = objects.collect();
            Arc::make_mut(table).objects = objects?;
        }
        Some(())
    }

    /// Drops all events.
    pub(crate) fn expire(&mut self) {
        self.compacted = self.revision;
        for table in &mut self.tables {
            let table = Arc::make_mut(table);
            table.log.clear();
            table.log_bytes = 0;
            table.compacted = self.revision;
            table.snapshots.drop_before(table.compacted);
        }
    }
}

/// An empty table whose history starts after `revision`.
fn empty(revision: u64) -> Arc<Table> {
    Arc::new(Table {
        compacted: revision,
        ..Table::default()
    })
}

/// The error for a read at a future revision.
pub(crate) fn too_large(asked: u64, current: u64) -> Error {
    Error::VersionTooLarge { asked, current }
}
