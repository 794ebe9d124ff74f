//! Reports pauses that a store asks for: without a report, a program that waits for minutes looks
//! as if it did nothing.

use std::{
    sync::{Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

static REPORT: OnceLock<fn(&str)> = OnceLock::new();
/// When the last reported pause ends: many requests may wait at the same time.
static END: Mutex<Option<Instant>> = Mutex::new(None);

/// Calls `report` with a sentence when a store asks this process to wait. Only the first call has
/// an effect; a library leaves it to its program.
pub fn report_waits(report: fn(&str)) {
    let _ = REPORT.set(report);
}

/// Reports a pause, unless one that was reported has not ended.
pub(super) fn report(cause: &str, wait: Duration) {
    let Some(report) = REPORT.get() else { return };
    let now = Instant::now();
    let is_due = {
        let mut end = END.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = end.is_none_or(|end| now >= end);
        if is_due {
            *end = now.checked_add(wait);
        }
        is_due
    };
    if is_due {
        let seconds = wait.as_secs_f64().ceil();
        report(&format!("{cause}; trying again in {seconds:.0} s"));
    }
}
