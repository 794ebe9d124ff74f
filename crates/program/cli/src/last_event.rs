//! The last event of `--output json`: each command that prints events ends with `finished` or
//! `detached`, also after an error.

use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::{Value, json};

use crate::{error::Error, hints, output::EventFormat, ui};

/// The events that this process has printed: a process follows at most one run.
static PRINTED: AtomicU8 = AtomicU8::new(NONE);

const NONE: u8 = 0;
/// `started`.
const STARTED: u8 = 1;
/// The last event.
const LAST: u8 = 2;

/// Records that the first event was printed, or is about to be.
pub(crate) fn started() {
    PRINTED.store(STARTED, Ordering::Relaxed);
}

/// Records that the event `finished` was printed, or is about to be.
pub(crate) fn finished() {
    PRINTED.store(LAST, Ordering::Relaxed);
}

/// Prints the last event of a command that launches a run, unless it was printed.
pub(crate) fn after_launch(format: EventFormat, error: Option<&Error>) {
    match (PRINTED.load(Ordering::Relaxed), error) {
        (NONE, Some(error)) => print(format, &not_started(error)),
        (STARTED, error) => print(format, &detached(error)),
        _ => {}
    }
}

/// Prints the last event of a command that follows an existing run, unless it was printed.
pub(crate) fn after_attach(format: EventFormat, error: Option<&Error>) {
    match (PRINTED.load(Ordering::Relaxed), error) {
        (NONE, Some(error)) => print(format, &detached(Some(error))),
        (STARTED, error) => print(format, &detached(error)),
        _ => {}
    }
}

fn print(format: EventFormat, event: &Value) {
    if format == EventFormat::Json {
        ui::json(&event.to_string());
    }
}

fn not_started(error: &Error) -> Value {
    let mut event = with_reason("finished", error);
    event["ending"] = "notStarted".into();
    event["exitCode"] = error.kind().code().into();
    event
}

fn detached(error: Option<&Error>) -> Value {
    match error {
        Some(error) => with_reason("detached", error),
        None => json!({"event": "detached"}),
    }
}

fn with_reason(event: &str, error: &Error) -> Value {
    let details = error.details_given().iter();
    json!({
        "event": event,
        "reason": hints::complete(error.message()),
        "details": details.map(|line| hints::complete(line)).collect::<Vec<_>>(),
        "remedy": error.remedy().map(hints::complete),
    })
}
