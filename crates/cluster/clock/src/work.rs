//! The work that components have to do at the current time of a manual clock.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{
        Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::time::Instant;

/// Returns the revision of the newest change of a kind, by its group and name.
pub type Newest<'a> = dyn Fn(&str, &str) -> u64 + 'a;

/// A component that acts on changes of the cluster and on the time.
pub trait Component: Debug + Send + Sync {
    /// Returns the work that the component has to do now, as a short sentence; `None` if it waits
    /// for a change or a later time. `newest` returns the revision of the newest change of a kind.
    fn pending(&self, newest: &Newest<'_>) -> Option<String>;

    /// Returns a number that grows whenever work of the component begins or ends.
    fn steps(&self) -> u64;
}

/// The timers of a clock, marked work, and the components.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    table: Mutex<Table>,
    steps: AtomicU64,
    components: Mutex<Vec<Weak<dyn Component>>>,
}

#[derive(Debug, Default)]
struct Table {
    last: u64,
    /// The timers that a component waits for, and when they are due.
    timers: BTreeMap<u64, Instant>,
    /// The number of marks of each component.
    busy: BTreeMap<&'static str, u64>,
}

impl Ledger {
    /// The table, to change it.
    fn table(&self) -> MutexGuard<'_, Table> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        self.steps.fetch_add(1, Ordering::SeqCst);
        table
    }

    fn components(&self) -> MutexGuard<'_, Vec<Weak<dyn Component>>> {
        self.components
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a mark of a component.
    pub(crate) fn mark(&self, what: &'static str) {
        let mut table = self.table();
        let count = table.busy.entry(what).or_insert(0);
        *count = count.saturating_add(1);
    }

    /// Removes a mark of a component.
    pub(crate) fn unmark(&self, what: &'static str) {
        let mut table = self.table();
        if let Some(count) = table.busy.get_mut(what) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                table.busy.remove(what);
            }
        }
    }

    /// Registers a timer until the returned value is dropped.
    pub(crate) fn timer(&self, due: Instant) -> Timer<'_> {
        let mut table = self.table();
        table.last = table.last.saturating_add(1);
        let id = table.last;
        table.timers.insert(id, due);
        Timer { ledger: self, id }
    }

    pub(crate) fn add(&self, component: Weak<dyn Component>) {
        let mut components = self.components();
        components.retain(|component| component.strong_count() > 0);
        components.push(component);
    }

    pub(crate) fn pending(&self, now: Instant, newest: &Newest<'_>) -> Vec<String> {
        // Work moves from components to marks, not back, without a change of the cluster.
        let components = self.components().clone();
        let components = components.iter().filter_map(Weak::upgrade);
        let mut all: Vec<String> = components
            .filter_map(|component| component.pending(newest))
            .collect();
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let due = table.timers.values().filter(|due| **due <= now).count();
        if due > 0 {
            all.push(match due {
                1 => "a timer is due".to_owned(),
                _ => format!("{due} timers are due"),
            });
        }
        all.extend(table.busy.keys().map(|what| format!("{what} is at work")));
        all
    }

    pub(crate) fn steps(&self) -> u64 {
        let components = self.components().clone();
        let components = components.iter().filter_map(Weak::upgrade);
        let sum = components.fold(0_u64, |sum, one| sum.wrapping_add(one.steps()));
        sum.wrapping_add(self.steps.load(Ordering::SeqCst))
    }
}

/// A timer that a component waits for.
#[derive(Debug)]
pub(crate) struct Timer<'a> {
    ledger: &'a Ledger,
    id: u64,
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        self.ledger.table().timers.remove(&self.id);
    }
}
