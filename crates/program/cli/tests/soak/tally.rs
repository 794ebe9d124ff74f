//! Counts of the soak test's actions, and its failures.

use std::{collections::BTreeMap, fmt};

use std::sync::Mutex;

/// Counters, failures and notes of all actors.
#[derive(Default)]
pub(crate) struct Tally(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    counts: BTreeMap<String, u64>,
    failures: Vec<String>,
    notes: Vec<String>,
}

/// Number of failures that are kept; further ones are only counted.
const KEPT_FAILURES: usize = 50;

impl Tally {
    /// Counts an event.
    pub(crate) fn count(&self, what: &str) {
        *self
            .0
            .lock()
            .unwrap()
            .counts
            .entry(what.to_owned())
            .or_default() += 1;
    }

    /// Records a failure, and prints it at once.
    pub(crate) fn fail(&self, what: String) {
        eprintln!("soak failure: {what}");
        self.count("failures");
        let mut inner = self.0.lock().unwrap();
        if inner.failures.len() < KEPT_FAILURES {
            inner.failures.push(what);
        }
    }

    /// Adds a line to the report.
    pub(crate) fn note(&self, what: &str) {
        println!("soak: {what}");
        self.0.lock().unwrap().notes.push(what.to_owned());
    }

    /// Fails the test if there was any failure.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        let inner = self.0.lock().unwrap();
        assert!(inner.failures.is_empty(), "{}", inner.failures.join("\n\n"));
    }

    /// Fails the test if an actor did nothing: a soak test that does nothing proves
    /// nothing.
    #[track_caller]
    pub(crate) fn assert_active(&self) {
        let inner = self.0.lock().unwrap();
        for what in [
            "runs ended as expected",
            "objects created",
            "clusters killed",
        ] {
            assert!(inner.counts.contains_key(what), "never: {what}");
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.0.lock().unwrap();
        for (what, count) in &inner.counts {
            writeln!(f, "soak: {count:>8} {what}")?;
        }
        Ok(())
    }
}
