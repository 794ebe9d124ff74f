//! The writer thread. It takes queued writes, executes them against the working state, makes the
//! batch durable in one commit, publishes the new state, and only then responds. Readers therefore
//! never see a write that could still be lost, except before [`Engine::sync`](crate::Engine::sync)
//! if the options defer syncs until then. Concurrent writes share one disk sync.
//!
//! A panic in a write or in the store fails only the affected writes: see
//! [`Machine::execute`].

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
    journal::{CommitError, Journal},
    machine::{Machine, message},
    state::State,
};

/// Maximum number of writes in a commit.
const MAX_BATCH_WRITES: usize = 512;
/// Maximum time to collect further writes for a commit. It bounds how long a write waits for
/// others.
const MAX_BATCH_DURATION: Duration = Duration::from_millis(20);
/// Expected maximum duration of a single write. Slower writes should be
/// prepared outside the writer, and are logged.
const SLOW_WRITE_THRESHOLD: Duration = Duration::from_millis(50);
/// Maximum number of queued writes; further writers wait for a free slot.
pub(crate) const QUEUE_CAPACITY: usize = 1024;

/// Sends the response of a write; the argument is the outcome of the commit.
pub(crate) type Responder = Box<dyn FnOnce(Result<(), Error>) + Send>;
/// A queued write.
pub(crate) type QueuedWrite = Box<dyn FnOnce(&mut Machine) -> Responder + Send>;

/// The state shared by readers and the writer.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The newest committed state.
    pub(crate) current: ArcSwap<State>,
    /// The longest duration of a single write.
    pub(crate) longest_hold: MaxDuration,
}

/// A maximum of durations.
#[derive(Debug, Default)]
pub(crate) struct MaxDuration(AtomicU64);

impl MaxDuration {
    fn record(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_max(nanoseconds, Ordering::Relaxed);
    }

    /// Returns the maximum and resets it.
    pub(crate) fn take(&self) -> Duration {
        Duration::from_nanos(self.0.swap(0, Ordering::Relaxed))
    }
}

/// Runs until all senders are dropped.
pub(crate) fn run(
    mut queue: mpsc::Receiver<QueuedWrite>,
    mut machine: Machine,
    mut journal: Box<dyn Journal>,
    shared: &Shared,
) {
    loop {
        let mut answers = Vec::new();
        let first = if machine.has_background_work() {
            machine.run_background_work();
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
            shared.longest_hold.record(held);
            if held > SLOW_WRITE_THRESHOLD {
                tracing::warn!(?held, "a write blocked all other writes");
            }
            let is_full = answers.len() >= MAX_BATCH_WRITES || now - begin >= MAX_BATCH_DURATION;
            next = if is_full { None } else { queue.try_recv().ok() };
        }
        let outcome = finish(&mut machine, &mut *journal, shared);
        for answer in answers {
            // A panic of a receiver must not affect the writer.
            let _ = catch_unwind(AssertUnwindSafe(|| answer(outcome.clone())));
        }
    }
}

/// Commits and publishes the changes of the machine, or rolls them back.
fn finish(machine: &mut Machine, journal: &mut dyn Journal, shared: &Shared) -> Result<(), Error> {
    let changes = machine.take_changes();
    if changes.sync {
        journal.sync_commits();
    }
    let mut commit = || {
        let commit = || journal.commit(machine.state.revision, &changes.records);
        catch_unwind(AssertUnwindSafe(commit)).unwrap_or_else(|panic| {
            let panic = message(&*panic);
            tracing::error!(panic, "the store panicked; its writes were rolled back");
            Err(CommitError::new(format!("the store panicked: {panic}")))
        })
    };
    if changes.sync || !changes.records.is_empty() {
        if let Err(error) = commit() {
            machine.roll_back(State::clone(&shared.current.load()));
            return Err(error.into());
        }
        machine.committed();
    }
    machine.drop_expired_history();
    shared.current.store(Arc::new(machine.state.clone()));
    for kind in changes.touched {
        let entry = machine.state.kinds.entry(kind);
        entry.revisions.send_replace(machine.state.revision);
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

    /// A journal that fails every second commit.
    struct Flaky(u32);

    impl Journal for Flaky {
        fn commit(&mut self, _revision: u64, _records: &[Record]) -> Result<(), CommitError> {
            self.0 += 1;
            if self.0.is_multiple_of(2) {
                Err(CommitError::new("disk full"))
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
            longest_hold: MaxDuration::default(),
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
    fn a_failed_commit_is_rolled_back_completely() {
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
    fn writes_are_invisible_before_their_commit() {
        let (mut machine, shared) = parts();
        put(&mut machine, "a");
        assert_eq!(shared.current.load().revision, 0);
        let kinds = &machine.state.kinds;
        let node = kinds.entry(kinds.builtin_id("", "Node").unwrap());
        assert_eq!(*node.revisions.borrow(), 0);
        finish(&mut machine, &mut Flaky(0), &shared).unwrap();
        assert_eq!(shared.current.load().revision, 1);
    }

    #[test]
    fn failed_writes_and_dry_runs_change_nothing() {
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
    fn a_panic_fails_only_its_write() {
        let (mut machine, _) = parts();
        let kind = machine.state.kinds.builtin_id("", "Node").unwrap();
        let value = json!({"metadata": {"name": "a"}});
        let failed: Result<(), _> = machine.execute(false, |tx| {
            tx.put(kind, value.as_object().unwrap())?;
            panic!("a bug")
        });
        assert!(matches!(failed, Err(Error::Internal(_))));
        assert_eq!(machine.state.revision, 0);
        put(&mut machine, "b");
        assert_eq!(machine.state.revision, 1);
    }
}
