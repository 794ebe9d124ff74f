//! The state machine: writes, one after the other, against the working state.
//! No I/O: what a batch of writes changed is handed over as records.

mod api_services;
mod apply;
mod bind;
mod bootstrap;
mod create;
pub(crate) mod definitions;
mod delete;
mod evict;
mod expiry;
mod namespace;
mod ownership;
mod prepared;
mod priority;
mod replace;
mod runtime_class;
mod scale;
mod service;
mod update;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

pub(crate) use bind::bind;
pub(crate) use bootstrap::bootstrap;
pub(crate) use create::{admit, create};
pub(crate) use delete::{check_options, delete, delete_collection, delete_listed};
pub(crate) use evict::evict;
pub(crate) use prepared::{Prepared, Rebase, commit, prepare};
pub use scale::scale_kind;
pub(crate) use scale::{of as scale_of, scale_view};
pub(crate) use update::{ReadUpdate, decode_update, patch, update, update_read};

use crate::{
    Error, Object,
    ages::Ages,
    custom::Outline,
    facts::KindFacts,
    journal::Record,
    kinds::{KindId, Kinds},
    options::{Clock, Ids},
    state::{Event, Limits, State},
};

/// An object as the machine works on it: JSON, before it is written to bytes.
pub(crate) type Draftable = Map<String, Value>;

/// Bytes of an object's JSON, at most: 1.5 MiB.
const LARGEST: usize = 3 << 19;

/// Objects that one turn of the writer deletes or looks at, at most, where many
/// are concerned.
pub(crate) const SLICE: usize = 256;
/// Bytes of the objects that one turn deletes; the last of them may exceed it.
pub(crate) const SLICE_BYTES: usize = 256 << 10;

/// The working state and what it needs from outside.
pub(crate) struct Machine {
    pub(crate) state: State,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) limits: Limits,
    ages: Ages,
    records: Vec<Record>,
    touched: Vec<KindId>,
    /// Whether a write may have left definitions and kinds out of line.
    unsettled: bool,
    /// Whether objects of a kind that is being deleted have gone.
    drained: bool,
    /// Whether work is left that no request waits for: see [`Machine::chore`].
    chores: bool,
    /// What has been done, where it is done to a copy of the state.
    writes: Option<Vec<(KindId, Event)>>,
    /// Whether an Event has been written, and when old ones were last looked
    /// for.
    wrote_event: bool,
    swept: Option<Timestamp>,
    /// The key after which the search for old ones continues.
    sweeping: Option<Arc<str>>,
}

/// What a batch of writes did.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) records: Vec<Record>,
    /// The kinds that have new events.
    pub(crate) touched: Vec<KindId>,
}

impl Machine {
    pub(crate) fn new(
        state: State,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        limits: Limits,
    ) -> Self {
        let chores = definitions::is_cleaning(&state);
        Self {
            state,
            clock,
            ids,
            ages: Ages::new(limits.time),
            limits,
            records: Vec::new(),
            touched: Vec::new(),
            unsettled: false,
            drained: false,
            chores,
            writes: None,
            wrote_event: false,
            swept: None,
            sweeping: None,
        }
    }

    /// Whether work is left that no request waits for.
    pub(crate) fn has_chores(&self) -> bool {
        self.chores
    }

    /// Does some of the work that no request waits for: deletes objects of
    /// definitions that are being deleted, and old Events. It takes little time,
    /// so that writes need not wait for all of it.
    pub(crate) fn chore(&mut self) {
        self.chores = false;
        let done = self.execute(false, |tx| {
            tx.machine.drained = definitions::is_cleaning(tx.state());
            expiry::go_on(tx);
            Ok(())
        });
        if let Err(error) = done {
            tracing::error!(%error, "objects of a deleted definition, or old Events, stay for now");
        }
    }

    /// Does one piece of work: all of it, or nothing when it fails or is a dry run.
    pub(crate) fn execute<T>(
        &mut self,
        dry_run: bool,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (before, records, touched) =
            (self.state.clone(), self.records.len(), self.touched.len());
        let writes = self.writes.as_ref().map_or(0, Vec::len);
        let now = self.clock.now();
        let work = std::panic::AssertUnwindSafe(|| {
            let mut transaction = Transaction {
                machine: self,
                now,
                dry_run,
            };
            let done = work(&mut transaction)?;
            definitions::settle(&mut transaction)?;
            expiry::sweep(&mut transaction);
            Ok(done)
        });
        // A fault in the rules must not end the writer: the write fails alone.
        let result = std::panic::catch_unwind(work).unwrap_or_else(|panic| {
            let panic = message(&*panic);
            tracing::error!(panic, "a write panicked: it is rolled back");
            Err(Error::Internal(format!(
                "the write failed by a fault of the server, nothing of it was kept: {panic}"
            )))
        });
        if dry_run || result.is_err() {
            self.state = before;
            self.records.truncate(records);
            self.touched.truncate(touched);
            if let Some(list) = &mut self.writes {
                list.truncate(writes);
            }
            self.unsettled = false;
            self.drained = false;
        }
        result
    }

    /// Forgets history that is too old. Old states go with it, so memory follows
    /// what is stored and what was written in the last minutes.
    pub(crate) fn forget_old(&mut self) {
        let now = self.clock.now();
        if let Some(revision) = self.ages.note(now, self.state.revision) {
            self.state.forget_until(revision);
        }
    }

    /// What changed since the last call.
    pub(crate) fn take_changes(&mut self) -> Changes {
        Changes {
            records: std::mem::take(&mut self.records),
            touched: std::mem::take(&mut self.touched),
        }
    }
}

/// The message of a panic.
pub(crate) fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message")
}

/// One piece of work in progress.
pub(crate) struct Transaction<'a> {
    machine: &'a mut Machine,
    /// The time of the write, the same all through it.
    pub(crate) now: Timestamp,
    /// Whether nothing of it will be kept.
    dry_run: bool,
}

impl Transaction<'_> {
    pub(crate) fn state(&self) -> &State {
        &self.machine.state
    }

    pub(crate) fn kinds(&self) -> &Kinds {
        &self.machine.state.kinds
    }

    pub(crate) fn ids(&self) -> &dyn Ids {
        &*self.machine.ids
    }

    pub(crate) fn facts(&self, kind: KindId) -> &KindFacts {
        &self.kinds().entry(kind).facts
    }

    pub(crate) fn get(&self, kind: KindId, key: &str) -> Option<&Arc<Object>> {
        self.machine.state.table(kind).objects.get(key)
    }

    /// Forgets the history of all kinds.
    pub(crate) fn expire(&mut self) {
        self.machine.state.expire();
        // Watches that sleep are woken: what they have not read is gone.
        let kinds: Vec<_> = self.machine.state.kinds.iter().map(|(id, _)| id).collect();
        self.machine.touched.extend(kinds);
    }

    /// Writes an object under the next revision; who manages which fields of it
    /// stays as it is. One that is too large is refused.
    pub(crate) fn put(
        &mut self,
        kind: KindId,
        value: &Map<String, Value>,
    ) -> Result<Arc<Object>, Error> {
        self.put_managed(kind, value, None)
    }

    /// Writes an object with the text of its managed fields under the next
    /// revision. One that is too large is refused.
    pub(crate) fn put_managed(
        &mut self,
        kind: KindId,
        value: &Map<String, Value>,
        managed: Option<&str>,
    ) -> Result<Arc<Object>, Error> {
        let revision = self.machine.state.revision + 1;
        let metadata = value.get("metadata");
        let text = |name| {
            metadata
                .and_then(|m| m.get(name)?.as_str())
                .unwrap_or_default()
        };
        let key = crate::object::key(Some(text("namespace")), text("name"));
        let before = self.get(kind, &key).cloned();
        let managed =
            managed.unwrap_or_else(|| before.as_ref().map_or("", |before| before.managed()));
        let facts = self.facts(kind);
        let object = Object::encode(value, managed, facts, revision, before.as_deref());
        if object.bytes().len() > LARGEST {
            return Err(Error::ObjectTooLarge);
        }
        // What is not kept gets no version of its own.
        let reported = self.dry_run.then(|| {
            let revision = before.as_ref().map_or(0, |before| before.revision());
            Object::encode(value, managed, facts, revision, before.as_deref())
        });
        let after = Arc::new(object);
        self.record(kind, &after, Some(after.bytes().clone()));
        if definitions::is_kind_of_definitions(self.state(), kind) {
            let outline = Arc::new(Outline::of(value));
            let definitions = &mut self.machine.state.definitions;
            definitions.insert(after.key().clone(), outline);
            self.machine.unsettled = true;
        }
        self.machine.wrote_event |= &*self.kinds().entry(kind).store_name == "events";
        let event = Event {
            revision,
            before,
            after: after.clone(),
            deleted: false,
        };
        self.apply(kind, event);
        Ok(reported.map_or(after, Arc::new))
    }

    /// Takes an object away; the answer has the deletion's version.
    pub(crate) fn remove(&mut self, kind: KindId, object: &Arc<Object>) -> Arc<Object> {
        let revision = self.machine.state.revision + 1;
        let after = Arc::new(object.with_revision(revision));
        self.record(kind, &after, None);
        if definitions::is_kind_of_definitions(self.state(), kind) {
            self.machine.state.definitions.remove(object.key());
            self.machine.unsettled = true;
        }
        self.machine.drained |= self.kinds().entry(kind).terminating;
        let before = self.get(kind, object.key()).cloned();
        let event = Event {
            revision,
            before,
            after: after.clone(),
            deleted: true,
        };
        self.apply(kind, event);
        after
    }

    fn apply(&mut self, kind: KindId, event: Event) {
        if let Some(writes) = &mut self.machine.writes {
            writes.push((kind, event.clone()));
        }
        self.machine.state.apply(kind, event, self.machine.limits);
    }

    fn record(&mut self, kind: KindId, object: &Object, value: Option<bytes::Bytes>) {
        let record = Record {
            kind: self.kinds().entry(kind).store_name.clone(),
            key: object.key().clone(),
            value,
        };
        self.machine.records.push(record);
        if self.machine.touched.last() != Some(&kind) {
            self.machine.touched.push(kind);
        }
    }
}
