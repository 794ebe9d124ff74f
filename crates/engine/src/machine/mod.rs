//! The state machine: writes, one after the other, against the working state.
//! No I/O: what a batch of writes changed is handed over as records.

mod apply;
mod bind;
mod create;
pub(crate) mod definitions;
mod delete;
mod evict;
mod expiry;
mod namespace;
mod ownership;
mod priority;
mod scale;
mod service;
mod update;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

pub(crate) use bind::bind;
pub(crate) use create::{admit, create};
pub(crate) use delete::{delete, delete_collection};
pub(crate) use evict::evict;
pub(crate) use namespace::bootstrap;
pub use scale::scale_kind;
pub(crate) use scale::{of as scale_of, scale_view};
pub(crate) use update::{patch, update};

use crate::{
    Error, Object,
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

/// The working state and what it needs from outside.
pub(crate) struct Machine {
    pub(crate) state: State,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) limits: Limits,
    records: Vec<Record>,
    touched: Vec<KindId>,
    /// Whether a write may have left definitions and kinds out of line.
    unsettled: bool,
    /// Whether an Event has been written, and when old ones were last looked
    /// for.
    wrote_event: bool,
    swept: Option<Timestamp>,
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
        Self {
            state,
            clock,
            ids,
            limits,
            records: Vec::new(),
            touched: Vec::new(),
            unsettled: false,
            wrote_event: false,
            swept: None,
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
        let result = std::panic::catch_unwind(work).unwrap_or_else(|_| {
            Err(Error::Internal(
                "the request broke a rule of the engine".into(),
            ))
        });
        if dry_run || result.is_err() {
            self.state = before;
            self.records.truncate(records);
            self.touched.truncate(touched);
            self.unsettled = false;
        }
        result
    }

    /// What changed since the last call.
    pub(crate) fn take_changes(&mut self) -> Changes {
        Changes {
            records: std::mem::take(&mut self.records),
            touched: std::mem::take(&mut self.touched),
        }
    }
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
            return Err(Error::TooLarge(format!("limit is {LARGEST}")));
        }
        // What is not kept gets no version of its own.
        let told = self.dry_run.then(|| {
            let revision = before.as_ref().map_or(0, |before| before.revision());
            Object::encode(value, managed, facts, revision, before.as_deref())
        });
        let after = Arc::new(object);
        self.record(kind, &after, Some(after.bytes().clone()));
        self.machine.unsettled |= definitions::concerns(self.state(), kind, false);
        self.machine.wrote_event |= &*self.kinds().entry(kind).store_name == "events";
        let event = Event {
            revision,
            before,
            after: after.clone(),
            deleted: false,
        };
        self.machine.state.apply(kind, event, self.machine.limits);
        Ok(told.map_or(after, Arc::new))
    }

    /// Takes an object away; the answer has the deletion's version.
    pub(crate) fn remove(&mut self, kind: KindId, object: &Arc<Object>) -> Arc<Object> {
        let revision = self.machine.state.revision + 1;
        let after = Arc::new(object.with_revision(revision));
        self.record(kind, &after, None);
        self.machine.unsettled |= definitions::concerns(self.state(), kind, true);
        let before = self.get(kind, object.key()).cloned();
        let event = Event {
            revision,
            before,
            after: after.clone(),
            deleted: true,
        };
        self.machine.state.apply(kind, event, self.machine.limits);
        after
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
