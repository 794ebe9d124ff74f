//! The writer: one thread that takes what is queued, does it against the
//! working state, makes the batch durable in one commit, publishes the new
//! state, and only then answers. So nobody sees a write that could still be
//! lost, and many writers share one sync of the disk.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::mpsc;

use crate::{Error, journal::Journal, machine::Machine, state::State};

/// Pieces of work in one commit, at most.
const BATCH: usize = 512;
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
}

/// Works until all senders are gone.
pub(crate) fn run(
    mut queue: mpsc::Receiver<Job>,
    mut machine: Machine,
    mut journal: Box<dyn Journal>,
    shared: &Shared,
) {
    while let Some(first) = queue.blocking_recv() {
        let mut answers = vec![first(&mut machine)];
        while answers.len() < BATCH {
            let Ok(job) = queue.try_recv() else { break };
            answers.push(job(&mut machine));
        }
        let outcome = finish(&mut machine, &mut *journal, shared);
        for answer in answers {
            answer(outcome.clone());
        }
    }
}

/// Commits and publishes what the machine did, or rolls it back.
fn finish(machine: &mut Machine, journal: &mut dyn Journal, shared: &Shared) -> Result<(), Error> {
    let changes = machine.take_changes();
    if !changes.records.is_empty()
        && let Err(problem) = journal.commit(machine.state.revision, &changes.records)
    {
        tracing::error!(problem, "a commit failed; its writes are rolled back");
        machine.state = State::clone(&shared.current.load());
        return Err(Error::Storage(format!(
            "the write could not be stored, nothing of it was kept: {problem}: check the disk of the data directory"
        )));
    }
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
        };
        let shared = Shared {
            current: ArcSwap::from_pointee(state.clone()),
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
