//! The state at one revision: persistent tables of objects, and the recent
//! events of each kind. A clone is cheap and never changes, so it serves as
//! snapshot for readers, as savepoint for writes, and as what a rollback
//! returns to.

use std::sync::Arc;

use imbl::{OrdMap, Vector};
use jiff::SignedDuration;

use crate::{
    Error, Object,
    custom::Outline,
    kinds::{Entry, KindId, Kinds},
    object::Objects,
    snapshots::Snapshots,
};

/// One write, as watches see it.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) before: Option<Arc<Object>>,
    /// The new state; of a deletion, the last state under the deletion's version.
    pub(crate) after: Arc<Object>,
    pub(crate) deleted: bool,
}

impl Event {
    /// What the event alone keeps in memory: states that are no longer current.
    fn weight(&self) -> usize {
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

/// The objects of one kind and their recent events.
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
    /// The events after a revision, oldest first; `None` when some of them are
    /// compacted away.
    pub(crate) fn events_after(&self, revision: u64) -> Option<impl Iterator<Item = &Event>> {
        if revision < self.compacted {
            return None;
        }
        let first = self.place_after(revision);
        Some(self.log.focus().narrow(first..).into_iter())
    }

    /// Where in the log the events after a revision begin.
    fn place_after(&self, revision: u64) -> usize {
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

    /// Whether the log has events up to a revision.
    fn has_until(&self, revision: u64) -> bool {
        self.log
            .front()
            .is_some_and(|event| event.revision <= revision)
    }

    /// Forgets the events up to a revision.
    fn forget_until(&mut self, revision: u64) {
        let kept = self.log.split_off(self.place_after(revision));
        let forgotten = std::mem::replace(&mut self.log, kept);
        if let Some(newest) = forgotten.back() {
            self.log_bytes -= forgotten.iter().map(Event::weight).sum::<usize>();
            self.compacted = newest.revision;
            self.snapshots.forget(self.compacted);
        }
    }

    /// The revision of the newest event in the log; 0 without one.
    pub(crate) fn newest(&self) -> u64 {
        self.log.back().map_or(0, |event| event.revision)
    }

    /// The objects as they were at a revision; `None` when it is compacted away.
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
        self.snapshots.keep(revision, &objects);
        Some(objects)
    }
}

/// How much history is kept of each kind.
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
    /// Lists at older revisions have expired, also those of kinds without later events: a
    /// token of a list is valid as long for every kind. Watches follow their table's events.
    compacted: u64,
    pub(crate) kinds: Arc<Kinds>,
    tables: Vec<Arc<Table>>,
    /// Objects whose kind went without them, by the kind's name in the store:
    /// as in Kubernetes they are there again when it comes back.
    left_behind: OrdMap<String, Objects>,
    /// What is known of each definition, by its name.
    pub(crate) definitions: OrdMap<Arc<str>, Arc<Outline>>,
    /// How far the deletion of a kind's objects has come, of kinds whose
    /// definition is being deleted.
    pub(crate) cleaning: OrdMap<KindId, Cleaning>,
}

/// How far the deletion of all objects of a kind has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cleaning {
    /// It has begun for the objects up to this key.
    UpTo(Arc<str>),
    /// It has begun for all.
    Begun,
}

impl State {
    /// No objects, history compacted up to `revision`.
    pub(crate) fn new(kinds: Kinds, revision: u64) -> Self {
        Self {
            revision,
            compacted: revision,
            tables: (0..kinds.len()).map(|_| empty(revision)).collect(),
            kinds: Arc::new(kinds),
            left_behind: OrdMap::new(),
            definitions: OrdMap::new(),
            cleaning: OrdMap::new(),
        }
    }

    /// Sets the revision a loaded state is of; its history begins after it.
    pub(crate) fn start_at(&mut self, revision: u64) {
        self.revision = revision;
        self.compacted = revision;
        for table in &mut self.tables {
            Arc::make_mut(table).compacted = revision;
        }
    }

    /// Serves one more kind, without history; of objects it has what an earlier
    /// kind of its name left behind.
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

    /// Changes a kind.
    pub(crate) fn change_kind(&mut self, id: KindId, change: impl FnOnce(&mut Entry)) {
        Arc::make_mut(&mut self.kinds).change(id, change);
    }

    /// Serves a kind no longer. Its last events can still be read.
    pub(crate) fn end_kind(&mut self, id: KindId) {
        let objects = self.table(id).objects.clone();
        if !objects.is_empty() {
            let name = self.kinds.entry(id).store_name.clone();
            self.left_behind.insert(name, objects);
        }
        self.change_kind(id, |entry| entry.live = false);
        self.cleaning.remove(&id);
    }

    /// Notes of which form of its definition a kind is, if nothing else changes.
    pub(crate) fn note_definition(&mut self, id: KindId, outline: Arc<Outline>) {
        Arc::make_mut(&mut self.kinds).note(id, outline);
    }

    /// Whether a kind has the same objects and events in both states.
    pub(crate) fn has_same_table(&self, other: &Self, kind: KindId) -> bool {
        Arc::ptr_eq(&self.tables[kind.0], &other.tables[kind.0])
    }

    /// Takes over the kinds of a state, `end`, that another, `base`, became. The
    /// kinds of this state are those of `base`.
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
                    view.begin_at(self.revision);
                }
            }
        }
    }

    pub(crate) fn table(&self, kind: KindId) -> &Table {
        &self.tables[kind.0]
    }

    /// Puts an object in without an event: at opening.
    pub(crate) fn load(&mut self, kind: KindId, object: Arc<Object>) {
        let table = Arc::make_mut(&mut self.tables[kind.0]);
        table.objects.insert(object.key().clone(), object);
    }

    /// Puts an object in whose kind is not there: at opening.
    pub(crate) fn load_left_behind(&mut self, store_name: &str, object: Arc<Object>) {
        let objects = self.left_behind.entry(store_name.to_owned()).or_default();
        objects.insert(object.key().clone(), object);
    }

    /// Applies one event, which must be of the next revision.
    pub(crate) fn apply(&mut self, kind: KindId, event: Event, limits: Limits) {
        debug_assert_eq!(event.revision, self.revision + 1);
        self.revision = event.revision;
        let table = Arc::make_mut(&mut self.tables[kind.0]);
        if event.deleted {
            table.objects.remove(event.after.key());
        } else {
            table
                .objects
                .insert(event.after.key().clone(), event.after.clone());
        }
        table.log_bytes += event.weight();
        table.log.push_back(event);
        while table.log.len() > limits.events || table.log_bytes > limits.bytes {
            let Some(oldest) = table.log.pop_front() else {
                break;
            };
            table.log_bytes -= oldest.weight();
            table.compacted = oldest.revision;
            table.snapshots.forget(table.compacted);
        }
    }

    /// The objects of a kind as they were at a revision; `None` when it is compacted away.
    pub(crate) fn at(&self, kind: KindId, revision: u64) -> Option<Objects> {
        if revision < self.compacted {
            return None;
        }
        self.table(kind).at(revision)
    }

    /// Forgets the events up to a revision.
    pub(crate) fn forget_until(&mut self, revision: u64) {
        self.compacted = self.compacted.max(revision);
        for table in &mut self.tables {
            if table.has_until(revision) {
                Arc::make_mut(table).forget_until(revision);
            }
        }
    }

    /// Forgets all events.
    pub(crate) fn expire(&mut self) {
        self.compacted = self.revision;
        for table in &mut self.tables {
            let table = Arc::make_mut(table);
            table.log.clear();
            table.log_bytes = 0;
            table.compacted = self.revision;
            table.snapshots.forget(table.compacted);
        }
    }
}

/// A table whose history begins after `revision`.
fn empty(revision: u64) -> Arc<Table> {
    Arc::new(Table {
        compacted: revision,
        ..Table::default()
    })
}

/// Why a version in the future cannot be read.
pub(crate) fn too_large(asked: u64, current: u64) -> Error {
    Error::VersionTooLarge { asked, current }
}
