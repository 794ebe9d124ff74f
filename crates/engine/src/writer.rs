//! The writer: one thread that takes what is queued, does it against the
//! working state, makes the batch durable in one commit, publishes the new
//! state, and only then answers. So nobody sees a write that could still be
//! lost, and many writers share one sync of the disk.
//!
//! A panic in a piece of work, or in the store, fails the writes that it
//! concerns and no others: see [`Machine::execute`].

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use tokio::sync::mpsc;

use crate::{
    Error,
    journal::Journal,
    machine::{Machine, message},
    state::State,
};

/// Pieces of work in one commit, at most.
const BATCH: usize = 512;
/// How long work is collected for one commit, once there is some: no piece of
/// it waits longer for the others.
const BATCH_TIME: Duration = Duration::from_millis(20);
/// How long one piece of work should hold the writer, at most. What takes longer
/// belongs beside it, and is logged.
const LONGEST_HOLD: Duration = Duration::from_millis(50);
/// Pieces of work that wait, at most; more writers wait for a place.
pub(crate) const QUEUE: usize = 1024;

/// Answers a piece of work, told whether the batch was kept.
pub(crate) type Answer = Box<dyn FnOnce(Result<(), Error>) + Send>;
/// A piece of work.
pub(crate) type Job = Box<dyn FnOnce(&mut Machine) -> Answer + Send>;

/// What readers share with the writer.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The newest durable state.
    pub(crate) current: ArcSwap<State>,
    /// How long one piece of work has held the writer.
    pub(crate) longest_hold: Longest,
}

/// The longest of many times.
#[derive(Debug, Default)]
pub(crate) struct Longest(AtomicU64);

impl Longest {
    fn note(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_max(nanoseconds, Ordering::Relaxed);
    }

    /// The longest since the last call.
    pub(crate) fn take(&self) -> Duration {
        Duration::from_nanos(self.0.swap(0, Ordering::Relaxed))
    }
}

/// Works until all senders are gone.
pub(crate) fn run(
    mut queue: mpsc::Receiver<Job>,
    mut machine: Machine,
    mut journal: Box<dyn Journal>,
    shared: &Shared,
) {
    loop {
        let mut answers = Vec::new();
        let first = if machine.has_chores() {
            machine.chore();
            match queue.try_recv() {
                Err(mpsc::error::TryRecvError::Disconnected) => return,
                first => first.ok(),
            }
        } else {
            match queue.blocking_recv() {
                None => return,
                first => first,
            }
        };
        let begin = Instant::now();
        let mut now = begin;
        let mut next = first;
        while let Some(job) = next {
            answers.push(job(&mut machine));
            let held = now.elapsed();
            now += held;
            shared.longest_hold.note(held);
            if held > LONGEST_HOLD {
                tracing::warn!(?held, "one write has held up all others");
            }
            let is_full = answers.len() >= BATCH || now - begin >= BATCH_TIME;
            next = if is_full { None } else { queue.try_recv().ok() };
        }
        let outcome = finish(&mut machine, &mut *journal, shared);
        for answer in answers {
            // A receiver's panic is its own.
            let _ = catch_unwind(AssertUnwindSafe(|| answer(outcome.clone())));
        }
    }
}

/// Commits and publishes what the machine did, or rolls it back.
fn finish(machine: &mut Machine, journal: &mut dyn Journal, shared: &Shared) -> Result<(), Error> {
    let changes = machine.take_changes();
    let mut commit = || {
        let commit = || journal.commit(machine.state.revision, &changes.records);
        catch_unwind(AssertUnwindSafe(commit))
            .unwrap_or_else(|panic| Err(format!("the store panicked: {}", message(&*panic))))
    };
    if !changes.records.is_empty()
        && let Err(problem) = commit()
    {
        tracing::error!(problem, "a commit failed; its writes are rolled back");
        machine.state = State::clone(&shared.current.load());
        return Err(Error::Storage(format!(
            "the write could not be stored, nothing of it was kept: {problem}: check the disk of the data directory"
        )));
    }
    machine.forget_old();
    shared.current.store(Arc::new(machine.state.clone()));
    for kind in changes.touched {
        let entry = machine.state.kinds.entry(kind);
        entry.news.send_replace(machine.state.revision);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::{
        journal::Record,
        kinds::Kinds,
        options::{RandomIds, SystemClock},
        state::Limits,
    };

    /// Fails every second commit.
    struct Flaky(u32);

    impl Journal for Flaky {
        fn commit(&mut self, _revision: u64, _records: &[Record]) -> Result<(), String> {
            self.0 += 1;
            if self.0.is_multiple_of(2) {
                Err("disk full".into())
            } else {
                Ok(())
            }
        }
    }

    fn parts() -> (Machine, Shared) {
        let state = State::new(Kinds::builtin(), 0);
        let limits = Limits {
            events: 10,
            bytes: 1000,
            time: jiff::SignedDuration::MAX,
        };
        let shared = Shared {
            current: ArcSwap::from_pointee(state.clone()),
            longest_hold: Longest::default(),
        };
        (
            Machine::new(state, Arc::new(SystemClock), Arc::new(RandomIds), limits),
            shared,
        )
    }

    fn put(machine: &mut Machine, name: &str) {
        let kind = machine.state.kinds.builtin_id("", "Node").unwrap();
        let value = json!({"metadata": {"name": name}});
        machine
            .execute(false, |tx| tx.put(kind, value.as_object().unwrap()))
            .unwrap();
    }

    #[test]
    fn a_failed_commit_is_rolled_back_and_leaves_no_trace() {
        let (mut machine, shared) = parts();
        let mut journal = Flaky(0);
        put(&mut machine, "a");
        finish(&mut machine, &mut journal, &shared).unwrap();
        put(&mut machine, "b");
        let error = finish(&mut machine, &mut journal, &shared).unwrap_err();
        assert!(matches!(error, Error::Storage(_)));
        assert_eq!(shared.current.load().revision, 1);
        put(&mut machine, "c");
        finish(&mut machine, &mut journal, &shared).unwrap();
        let state = shared.current.load();
        let kind = state.kinds.builtin_id("", "Node").unwrap();
        let names: Vec<_> = state
            .table(kind)
            .objects
            .keys()
            .map(|key| key.to_string())
            .collect();
        assert_eq!(
            (names, state.revision),
            (vec!["a".to_owned(), "c".to_owned()], 2)
        );
    }

    #[test]
    fn a_write_is_not_seen_before_its_commit() {
        let (mut machine, shared) = parts();
        put(&mut machine, "a");
        assert_eq!(shared.current.load().revision, 0);
        let kinds = &machine.state.kinds;
        let node = kinds.entry(kinds.builtin_id("", "Node").unwrap());
        assert_eq!(*node.news.borrow(), 0);
        finish(&mut machine, &mut Flaky(0), &shared).unwrap();
        assert_eq!(shared.current.load().revision, 1);
    }

    #[test]
    fn failed_and_dry_work_leaves_nothing() {
        let (mut machine, _) = parts();
        let kind = machine.state.kinds.builtin_id("", "Node").unwrap();
        let value = json!({"metadata": {"name": "a"}});
        let value = value.as_object().unwrap();
        machine.execute(true, |tx| tx.put(kind, value)).unwrap();
        let failed: Result<(), _> = machine.execute(false, |tx| {
            tx.put(kind, value)?;
            Err(Error::Internal("x".into()))
        });
        assert!(failed.is_err());
        assert_eq!(machine.state.revision, 0);
        assert!(machine.take_changes().records.is_empty());
    }

    #[test]
    fn a_panic_in_the_rules_fails_one_write_alone() {
        let (mut machine, _) = parts();
        let kind = machine.state.kinds.builtin_id("", "Node").unwrap();
        let value = json!({"metadata": {"name": "a"}});
        let failed: Result<(), _> = machine.execute(false, |tx| {
            tx.put(kind, value.as_object().unwrap())?;
            panic!("a fault")
        });
        assert!(matches!(failed, Err(Error::Internal(_))));
        assert_eq!(machine.state.revision, 0);
        put(&mut machine, "b");
        assert_eq!(machine.state.revision, 1);
    }
}
