//! The state machine: executes writes sequentially against the working state. The machine performs
//! no I/O: the changes of a batch of writes are returned as records.

mod admission;
mod api_services;
mod apply;
mod bind;
mod bootstrap;
mod conversion;
mod create;
pub(crate) mod definitions;
mod delete;
mod evict;
mod expiry;
mod limit_range;
mod mountable_secrets;
mod namespace;
mod ownership;
mod pod_resize;
mod pod_security;
mod prepared;
mod priority;
mod quota;
mod replace;
mod reviews;
mod runtime_class;
mod scale;
mod service;
mod service_account;
mod storage_class;
mod token_volume;
mod topology_labels;
mod update;

use std::sync::Arc;

use jiff::Timestamp;
use longshore_builtin::Lifecycle;
use serde_json::{Map, Value};

pub use api_services::api_service_priorities;
pub(crate) use bind::bind;
pub(crate) use bootstrap::bootstrap;
pub(crate) use create::{admit, create, create_reviewed};
pub(crate) use definitions::{begin_cleanup, deferred_cleanups};
pub(crate) use delete::{check_options, delete, delete_collection, delete_listed};
pub(crate) use evict::evict;
pub(crate) use namespace::check as check_namespace;
pub(crate) use prepared::{Prepared, Rebase, RevisionShift, commit, prepare};
pub(crate) use reviews::{Answers, Next, Reviews};
pub use reviews::{Review, ReviewStage};
pub use scale::scale_kind;
pub(crate) use scale::{of as scale_of, scale_view};
pub(crate) use update::{DecodedUpdate, decode_update, patch, update, update_decoded};

use crate::{
    Error, Object, Snapshot,
    custom::DefinitionSummary,
    journal::Record,
    kinds::{KindId, Kinds},
    options::{Clock, Ids},
    revision_ages::RevisionAges,
    rules::ViewRules,
    state::{Event, Limits, State},
};

/// An object that the machine works on: JSON that is not encoded yet.
pub(crate) type JsonObject = Map<String, Value>;

/// Maximum size of an object's JSON in bytes: 1.5 MiB.
const MAX_OBJECT_BYTES: usize = 3 << 19;

/// Maximum number of objects that one turn of the writer deletes or scans when
/// a write affects many.
pub(crate) const MAX_OBJECTS_PER_TURN: usize = 256;
/// Size budget, in bytes, of the objects that one turn deletes. The last object
/// may exceed it.
pub(crate) const MAX_BYTES_PER_TURN: usize = 256 << 10;

/// The working state and its dependencies.
pub(crate) struct Machine {
    pub(crate) state: State,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) limits: Limits,
    revision_ages: RevisionAges,
    records: Vec<Record>,
    touched: Vec<KindId>,
    /// True if a write may require definitions and kinds to be reconciled.
    needs_reconcile: bool,
    /// True if objects of a terminating kind were removed.
    lost_terminating_objects: bool,
    /// The UIDs of definitions whose deferred deletion of objects begins.
    begins_cleanup: Vec<Box<str>>,
    /// True if background work is pending: see [`Machine::run_background_work`].
    background_work_pending: bool,
    /// True if changes were rolled back that may have been background work. The work continues
    /// after the next commit that succeeds.
    resumes_background_work: bool,
    /// The changes, if this machine works on a copy of the state.
    writes: Option<Vec<(KindId, Event)>>,
    /// The reviews of the write that this machine executes, if the write needs reviews.
    reviews: Option<Arc<Reviews>>,
    /// True if an Event was written since the last sweep of expired Events.
    wrote_event: bool,
    last_sweep: Option<Timestamp>,
    /// The key after which the sweep continues.
    sweep_position: Option<Arc<str>>,
    /// True if the next commit is synced, and all later ones.
    sync: bool,
}

/// The result of a batch of writes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) records: Vec<Record>,
    /// The kinds that have new events.
    pub(crate) touched: Vec<KindId>,
    /// True if commits are durable from now on, with all earlier ones.
    pub(crate) sync: bool,
}

impl Machine {
    pub(crate) fn new(
        state: State,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        limits: Limits,
    ) -> Self {
        let background_work_pending = definitions::has_pending_cleanup(&state);
        Self {
            state,
            clock,
            ids,
            revision_ages: RevisionAges::new(limits.time),
            limits,
            records: Vec::new(),
            touched: Vec::new(),
            needs_reconcile: false,
            lost_terminating_objects: false,
            begins_cleanup: Vec::new(),
            background_work_pending,
            resumes_background_work: false,
            writes: None,
            reviews: None,
            wrote_event: false,
            last_sweep: None,
            sweep_position: None,
            sync: false,
        }
    }

    /// Returns true if background work is pending.
    pub(crate) fn has_background_work(&self) -> bool {
        self.background_work_pending
    }

    /// Executes a slice of background work: deletes objects of terminating definitions, and expired
    /// Events. Each call is short, so that writes do not have to wait for all of it.
    pub(crate) fn run_background_work(&mut self) {
        self.background_work_pending = false;
        let done = self.execute(false, |tx| {
            tx.machine.lost_terminating_objects = definitions::has_pending_cleanup(tx.state());
            expiry::continue_sweep(tx);
            Ok(())
        });
        if let Err(error) = done {
            tracing::error!(%error, "cannot delete objects of deleted definitions or expired Events");
        }
    }

    /// Executes a write atomically: if it fails or is a dry run, the state does not change.
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
                warnings: Vec::new(),
            };
            let done = work(&mut transaction)?;
            definitions::reconcile(&mut transaction)?;
            expiry::sweep(&mut transaction);
            Ok(done)
        });
        // A bug in the rules must not stop the writer: only this write fails.
        let result = std::panic::catch_unwind(work).unwrap_or_else(|panic| {
            let panic = message(&*panic);
            tracing::error!(panic, "a write panicked and was rolled back");
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
            self.needs_reconcile = false;
            self.lost_terminating_objects = false;
            self.begins_cleanup.clear();
        }
        result
    }

    /// Drops history that exceeds its retention time, together with the old
    /// states it refers to. This bounds memory to the current objects plus the
    /// writes of the last minutes.
    pub(crate) fn drop_expired_history(&mut self) {
        let now = self.clock.history_time();
        if let Some(revision) = self.revision_ages.record(now, self.state.revision) {
            self.state.drop_history_until(revision);
        }
    }

    /// Restores an earlier state, because the changes since could not be stored.
    pub(crate) fn roll_back(&mut self, state: State) {
        self.state = state;
        self.needs_reconcile = false;
        self.lost_terminating_objects = false;
        // Background work that cannot be stored would be repeated in a busy loop.
        self.background_work_pending = false;
        self.resumes_background_work = true;
    }

    /// Continues background work that was rolled back.
    pub(crate) fn committed(&mut self) {
        self.background_work_pending |= std::mem::take(&mut self.resumes_background_work);
    }

    /// Ends the time in which commits are not durable.
    pub(crate) fn sync(&mut self) {
        self.sync = true;
    }

    /// Returns the changes since the last call.
    pub(crate) fn take_changes(&mut self) -> Changes {
        Changes {
            records: std::mem::take(&mut self.records),
            touched: std::mem::take(&mut self.touched),
            sync: std::mem::take(&mut self.sync),
        }
    }
}

/// The message of a panic.
pub(crate) fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message")
}

/// A write in progress.
pub(crate) struct Transaction<'a> {
    machine: &'a mut Machine,
    /// The time of the write, constant for its duration.
    pub(crate) now: Timestamp,
    /// True if all changes are discarded at the end.
    dry_run: bool,
    /// Warnings of the validation for the client.
    warnings: Vec<String>,
}

impl Transaction<'_> {
    /// Appends the warnings of the validation to the warnings of the decoded request.
    fn with_warnings(&mut self, mut decoded: Vec<String>) -> Vec<String> {
        decoded.append(&mut self.warnings);
        decoded
    }

    pub(crate) fn state(&self) -> &State {
        &self.machine.state
    }

    pub(crate) fn kinds(&self) -> &Kinds {
        &self.machine.state.kinds
    }

    pub(crate) fn ids(&self) -> &dyn Ids {
        &*self.machine.ids
    }

    pub(crate) fn rules(&self, kind: KindId) -> &ViewRules {
        &self.kinds().entry(kind).rules
    }

    pub(crate) fn get(&self, kind: KindId, key: &str) -> Option<&Arc<Object>> {
        self.machine.state.table(kind).objects.get(key)
    }

    /// Replaces all objects and kinds by the content of a snapshot. Watches expire.
    pub(crate) fn restore(&mut self, snapshot: &Snapshot) {
        let machine = &mut *self.machine;
        machine.state = snapshot.following(&machine.state);
        let ids = (0..machine.state.kinds.len()).map(KindId);
        machine.touched.extend(ids);
        machine.background_work_pending = definitions::has_pending_cleanup(&machine.state);
    }

    /// Keeps deleted definitions and their objects until [`begin_cleanup`].
    pub(crate) fn defer_cleanup(&mut self) {
        self.machine.state.defers_cleanup = true;
    }

    /// Drops the history of all kinds.
    pub(crate) fn expire(&mut self) {
        self.machine.state.expire();
        // Wake idle watches: the events that they have not read are dropped.
        let kinds: Vec<_> = self.machine.state.kinds.iter().map(|(id, _)| id).collect();
        self.machine.touched.extend(kinds);
    }

    /// Writes an object at the next revision and leaves its managed fields
    /// unchanged. Fails if the object is too large.
    pub(crate) fn put(
        &mut self,
        kind: KindId,
        value: &Map<String, Value>,
    ) -> Result<Arc<Object>, Error> {
        self.put_managed(kind, value, None)
    }

    /// Writes an object with the given managed fields at the next revision.
    /// Fails if the object is too large.
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
        let rules = self.rules(kind);
        let object = Object::encode(value, managed, rules, revision, before.as_deref());
        if object.bytes().len() > MAX_OBJECT_BYTES {
            return Err(Error::ObjectTooLarge);
        }
        // In a dry run, the object gets no new revision.
        let reported = self.dry_run.then(|| {
            let revision = before.as_ref().map_or(0, |before| before.revision());
            Object::encode(value, managed, rules, revision, before.as_deref())
        });
        let after = Arc::new(object);
        if definitions::is_kind_of_definitions(self.state(), kind) {
            let summary = Arc::new(DefinitionSummary::of(value));
            let definitions = &mut self.machine.state.definitions;
            definitions.insert(after.key().clone(), summary);
            self.machine.needs_reconcile = true;
        }
        self.machine.wrote_event |= self.rules(kind).lifecycle == Lifecycle::Expiring;
        let event = Event {
            revision,
            before,
            after: after.clone(),
            deleted: false,
        };
        self.apply(kind, event);
        Ok(reported.map_or(after, Arc::new))
    }

    /// Removes an object. The returned object carries the revision of the
    /// deletion.
    pub(crate) fn remove(&mut self, kind: KindId, object: &Arc<Object>) -> Arc<Object> {
        let revision = self.machine.state.revision + 1;
        let after = Arc::new(object.with_revision(revision));
        let before = self.get(kind, object.key()).cloned();
        if definitions::is_kind_of_definitions(self.state(), kind) {
            self.machine.state.definitions.remove(object.key());
            self.machine.needs_reconcile = true;
        }
        self.machine.lost_terminating_objects |= self.kinds().entry(kind).is_terminating;
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
        self.record(kind, &event);
        if let Some(writes) = &mut self.machine.writes {
            writes.push((kind, event.clone()));
        }
        self.machine.state.apply(kind, event, self.machine.limits);
    }

    fn record(&mut self, kind: KindId, event: &Event) {
        let bytes = |object: &Arc<Object>| object.bytes().clone();
        let record = Record {
            kind: self.kinds().entry(kind).store_name.clone(),
            key: event.after.key().clone(),
            value: (!event.deleted).then(|| bytes(&event.after)),
            before: event.before.as_ref().map(bytes),
        };
        self.machine.records.push(record);
        if self.machine.touched.last() != Some(&kind) {
            self.machine.touched.push(kind);
        }
    }
}
