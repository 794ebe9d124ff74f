//! Prepared writes. A write that affects large objects runs outside the writer, against a copy of
//! the state. The writer then only verifies that all data that the write read is unchanged, and
//! commits its changes.

use std::sync::Arc;

use jiff::SignedDuration;
use longshore_builtin::Admission;

use super::{Machine, Reviews, Transaction, definitions, namespace};
use crate::{
    Deleted, Dependency, Error, Object, Written,
    kinds::{KindId, Kinds},
    options::{Clock, Ids},
    state::{Cleaning, Event, Limits, State},
};

/// The kinds of the limits of a namespace.
const LIMITS: [&str; 2] = ["LimitRange", "ResourceQuota"];

/// The changes of a write to a copy of the state.
#[derive(Debug)]
pub(crate) struct Prepared {
    base: State,
    end: State,
    writes: Vec<(KindId, Event)>,
    touched: Vec<KindId>,
    wrote_event: bool,
    background_work_pending: bool,
    dependencies: Vec<Dependency>,
}

/// Maps revisions of the copy to revisions of the current state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RevisionShift {
    base: u64,
    by: u64,
}

/// A response that contains revisions.
pub(crate) trait Rebase {
    /// Returns the response with its revisions mapped.
    fn rebased(self, moved: RevisionShift) -> Self;
}

impl Rebase for () {
    fn rebased(self, _: RevisionShift) -> Self {}
}

impl Rebase for Arc<Object> {
    fn rebased(self, moved: RevisionShift) -> Self {
        if moved.by == 0 || self.revision() <= moved.base {
            return self;
        }
        Arc::new(self.with_revision(self.revision() + moved.by))
    }
}

impl Rebase for Written {
    fn rebased(self, moved: RevisionShift) -> Self {
        Self {
            object: self.object.rebased(moved),
            ..self
        }
    }
}

impl Rebase for Deleted {
    fn rebased(self, moved: RevisionShift) -> Self {
        match self {
            Self::Gone(object) => Self::Gone(object.rebased(moved)),
            Self::Pending(object) => Self::Pending(object.rebased(moved)),
        }
    }
}

/// Executes a write against a copy of the state.
pub(crate) fn prepare<T>(
    base: State,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    (dry_run, reviews): (bool, Option<Arc<Reviews>>),
    work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error>,
) -> Result<(T, Prepared), Error> {
    // The copy needs no history. Only the writer drops old states.
    let limits = Limits {
        events: usize::MAX,
        bytes: usize::MAX,
        time: SignedDuration::MAX,
    };
    let mut machine = Machine::new(base.clone(), clock, ids, limits);
    machine.writes = Some(Vec::new());
    machine.reviews = reviews;
    machine.background_work_pending = false;
    let done = machine.execute(dry_run, work)?;
    let touched = machine.take_changes().touched;
    let prepared = Prepared {
        base,
        end: machine.state,
        writes: machine.writes.take().unwrap_or_default(),
        touched,
        wrote_event: machine.wrote_event,
        background_work_pending: machine.background_work_pending,
        dependencies: Vec::new(),
    };
    Ok((done, prepared))
}

/// Commits a prepared write. Returns `None` if data that it read has changed since.
///
/// # Errors
/// Fails if an object was created in a namespace that has started terminating.
pub(crate) fn commit(
    tx: &mut Transaction<'_>,
    prepared: &Prepared,
) -> Result<Option<RevisionShift>, Error> {
    let Prepared { base, end, .. } = prepared;
    if !prepared.is_unchanged_in(tx.state()) {
        return Ok(None);
    }
    let moved = RevisionShift {
        base: base.revision,
        by: tx.state().revision - base.revision,
    };
    for (kind, event) in &prepared.writes {
        let info = tx.kinds().entry(*kind).info.clone();
        let is_new = event.before.is_none() && !event.deleted;
        if let (true, true, Some(namespace)) =
            (is_new, info.is_namespaced(), event.after.namespace())
        {
            namespace::check(tx.state(), &info, namespace, event.after.name())?;
        }
        tx.replay(*kind, event, moved);
    }
    if !Arc::ptr_eq(&base.kinds, &end.kinds) || prepared.wrote_definitions() {
        tx.machine.state.adopt_kinds(base, end);
    }
    tx.machine.touched.extend(&prepared.touched);
    tx.machine.wrote_event |= prepared.wrote_event;
    tx.machine.background_work_pending |= prepared.background_work_pending;
    Ok(Some(moved))
}

impl Prepared {
    /// Makes the commit depend on objects that a reviewer has read.
    pub(crate) fn depends_on(&mut self, dependencies: Vec<Dependency>) {
        self.dependencies = dependencies;
    }

    fn wrote_definitions(&self) -> bool {
        self.writes
            .iter()
            .any(|(kind, _)| definitions::is_kind_of_definitions(&self.base, *kind))
    }

    /// Returns true if all data that the write read is unchanged in `state`.
    fn is_unchanged_in(&self, state: &State) -> bool {
        let (base, end) = (&self.base, &self.end);
        if !Arc::ptr_eq(&state.kinds, &base.kinds) {
            return false;
        }
        let same_object = |(kind, event): &(KindId, Event)| {
            let key = event.after.key();
            let at = |state: &State| state.table(*kind).objects.get(key).map(Arc::as_ptr);
            at(state) == at(base)
        };
        // Admission of an object depends on its namespace and the limits of the namespace.
        let same_limits = |(kind, event): &(KindId, Event)| {
            let is_new = event.before.is_none();
            let is_limited = is_new || base.kinds.entry(*kind).rules.admission != Admission::None;
            let namespace = event.after.namespace();
            let namespace = namespace.filter(|_| is_limited && !event.deleted);
            namespace.is_none_or(|namespace| {
                let own = |state: &State| {
                    let kind = state.kinds.builtin_id("", "Namespace")?;
                    let found = state.table(kind).objects.get(namespace);
                    found.map(Arc::as_ptr)
                };
                let same = |limits: &&str| {
                    let at = |state: &State| -> Vec<_> {
                        let objects = state.in_namespace("", limits, namespace);
                        objects.map(Arc::as_ptr).collect()
                    };
                    at(state) == at(base)
                };
                own(state) == own(base) && LIMITS.iter().all(same)
            })
        };
        self.writes.iter().all(same_object)
            && self.dependencies.iter().all(|one| one.holds(state))
            && self.writes.iter().all(same_limits)
            && self.tables().all(|kind| state.has_same_table(base, kind))
            && removed_kinds(&base.kinds, &end.kinds).all(|kind| state.has_same_table(base, kind))
            && cleaned_kinds(base, end).all(|kind| state.has_same_table(base, kind))
    }

    /// The tables that the write read completely.
    fn tables(&self) -> impl Iterator<Item = KindId> {
        let kinds = &self.base.kinds;
        let written = self.writes.iter().map(|(kind, _)| *kind);
        written.flat_map(|written| {
            let own = definitions::is_kind_of_definitions(&self.base, written).then_some(written);
            let read = kinds.entry(written).rules.reads_all_of.iter();
            read.filter_map(|(group, kind)| kinds.builtin_id(group, kind))
                .chain(own)
        })
    }
}

/// The kinds whose objects were deleted together with their definition. Objects created since then
/// must also be deleted.
fn cleaned_kinds<'a>(base: &'a State, end: &'a State) -> impl Iterator<Item = KindId> {
    let cleaned = |(kind, _): &(&KindId, &Cleaning)| {
        !matches!(base.cleaning.get(*kind), Some(Cleaning::Begun))
    };
    end.cleaning.iter().filter(cleaned).map(|(kind, _)| *kind)
}

/// The kinds of `base` that `end` no longer contains. The result depends on all
/// of their objects.
fn removed_kinds<'a>(base: &'a Kinds, end: &'a Kinds) -> impl Iterator<Item = KindId> {
    let ended = |kind: &KindId| {
        let (before, after) = (base.entry(*kind), end.entry(*kind));
        before.is_live && (!after.is_live || before.uid != after.uid)
    };
    (0..base.len()).map(KindId).filter(ended)
}

impl Transaction<'_> {
    /// Repeats a change of the copy at the next revision.
    fn replay(&mut self, kind: KindId, event: &Event, moved: RevisionShift) {
        let after = event.after.clone().rebased(moved);
        if event.deleted {
            self.machine.lost_terminating_objects |= self.kinds().entry(kind).is_terminating;
        }
        let event = Event {
            revision: after.revision(),
            before: self.get(kind, after.key()).cloned(),
            after,
            deleted: event.deleted,
        };
        self.record(kind, &event);
        self.machine.state.apply(kind, event, self.machine.limits);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::options::{RandomIds, SystemClock};

    fn machine() -> Machine {
        let limits = Limits {
            events: 100,
            bytes: 1 << 20,
            time: SignedDuration::MAX,
        };
        let state = State::new(Kinds::builtin(), 0);
        Machine::new(state, Arc::new(SystemClock), Arc::new(RandomIds), limits)
    }

    fn put(tx: &mut Transaction<'_>, name: &str, n: u8) -> Result<Arc<Object>, Error> {
        let kind = tx.kinds().builtin_id("", "Node").unwrap();
        let value = json!({"metadata": {"name": name}, "n": n});
        tx.put(kind, value.as_object().unwrap())
    }

    fn prepared(machine: &Machine, name: &'static str) -> (Arc<Object>, Prepared) {
        let (clock, ids) = (machine.clock.clone(), machine.ids.clone());
        prepare(machine.state.clone(), clock, ids, (false, None), |tx| {
            put(tx, name, 1)
        })
        .unwrap()
    }

    #[test]
    fn writes_prepared_on_changed_objects_are_not_committed() {
        let mut machine = machine();
        machine.execute(false, |tx| put(tx, "a", 0)).unwrap();
        let (_, change) = prepared(&machine, "a");
        machine.execute(false, |tx| put(tx, "a", 2)).unwrap();
        let taken = machine.execute(false, |tx| commit(tx, &change)).unwrap();
        assert!(taken.is_none());
        assert_eq!(machine.state.revision, 2);
    }

    #[test]
    fn independent_prepared_writes_get_later_revisions() {
        let mut machine = machine();
        let (made, change) = prepared(&machine, "a");
        assert_eq!(made.revision(), 1);
        machine.execute(false, |tx| put(tx, "b", 0)).unwrap();
        let moved = machine.execute(false, |tx| commit(tx, &change)).unwrap();
        let made = made.rebased(moved.unwrap());
        let kind = machine.state.kinds.builtin_id("", "Node").unwrap();
        let kept = &machine.state.table(kind).objects["a"];
        assert_eq!((made.revision(), kept.revision()), (2, 2));
        assert_eq!(made.bytes(), kept.bytes());
        assert_eq!(kept.value()["metadata"]["resourceVersion"], "2");
        assert_eq!(machine.take_changes().records.len(), 2);
        // The object now exists, so the same change cannot be committed twice.
        let taken = machine.execute(false, |tx| commit(tx, &change)).unwrap();
        assert!(taken.is_none());
    }

    #[test]
    fn a_panic_during_preparation_is_an_error() {
        let machine = machine();
        let (clock, ids) = (machine.clock.clone(), machine.ids.clone());
        let failed = prepare(machine.state.clone(), clock, ids, (false, None), |tx| {
            put(tx, "a", 1)?;
            Result::<(), _>::Err(Error::Internal(format!("{}", [0][tx.kinds().len()])))
        });
        assert!(matches!(failed, Err(Error::Internal(_))));
    }
}
