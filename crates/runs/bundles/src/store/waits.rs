//! Reports pauses that a store asks for. Without a report, a program that waits for minutes appears
//! to hang.

use std::{
    sync::{Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

static REPORT: OnceLock<fn(&str)> = OnceLock::new();
/// The end of the last reported pause, because many requests may wait at the same time.
static END: Mutex<Option<Instant>> = Mutex::new(None);

/// Sets the function that is called with a sentence when a store asks this process to wait. Only
/// the first call has an effect. Libraries should leave it to the program.
pub fn report_waits(report: fn(&str)) {
    let _ = REPORT.set(report);
}

/// Reports a pause, unless an earlier reported pause has not ended.
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
