//! Events expire one hour after the last write, like the etcd lease that Kubernetes uses,
//! regardless of the times they contain. Writes of new Events trigger the removal of expired ones,
//! at most once a minute and in small slices.

use std::{ops::Bound, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use longshore_model::time;
use serde::Deserialize;

use super::{MAX_OBJECTS_PER_TURN, Transaction};
use crate::Object;

/// Retention time of Events.
const RETENTION: SignedDuration = SignedDuration::from_hours(1);
/// Minimum interval between two sweeps.
const SWEEP_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// The creation time and the write times of an Event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Times {
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    creation_timestamp: Option<String>,
    managed_fields: Vec<Entry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    time: Option<String>,
}

/// The time of the last write of an Event, according to its managed fields.
fn last_write(event: &Object) -> Option<Timestamp> {
    let Times { metadata } = serde_json::from_slice(event.bytes()).ok()?;
    let entries = metadata.managed_fields.into_iter();
    entries
        .map(|entry| entry.time)
        .chain([metadata.creation_timestamp])
        .flatten()
        .filter_map(|text| time::parse(&text))
        .max()
}

impl Transaction<'_> {
    /// Lets this write start a sweep.
    pub(crate) fn expire_events(&mut self) {
        self.machine.wrote_event = true;
        self.machine.last_sweep = None;
    }
}

/// Starts a sweep of expired Events and removes the first slice. The rest
/// becomes a background task.
pub(super) fn sweep(tx: &mut Transaction<'_>) {
    // A write on a copy of the state leaves the sweep to the writer.
    if tx.machine.writes.is_some() || !std::mem::take(&mut tx.machine.wrote_event) {
        return;
    }
    let last_sweep = tx.machine.last_sweep;
    let is_too_soon =
        last_sweep.is_some_and(|last_sweep| tx.now.duration_since(last_sweep) < SWEEP_INTERVAL);
    if is_too_soon || tx.machine.sweep_position.is_some() {
        return;
    }
    tx.machine.last_sweep = Some(tx.now);
    tx.machine.sweep_position = Some("".into());
    continue_sweep(tx);
}

/// Continues the current sweep.
pub(super) fn continue_sweep(tx: &mut Transaction<'_>) {
    let now = tx.now;
    let Some(from) = tx.machine.sweep_position.take() else {
        return;
    };
    let Some(kind) = tx.kinds().builtin_id("", "Event") else {
        return;
    };
    let is_old = |event: &&Arc<Object>| {
        last_write(event).is_some_and(|last_write| now.duration_since(last_write) >= RETENTION)
    };
    let from: (Bound<&str>, Bound<&str>) = (Bound::Excluded(&*from), Bound::Unbounded);
    let objects = tx.state().table(kind).objects.range::<_, str>(from);
    let examined: Vec<Arc<Object>> = objects
        .take(MAX_OBJECTS_PER_TURN)
        .map(|(_, event)| event.clone())
        .collect();
    if let (true, Some(last)) = (examined.len() == MAX_OBJECTS_PER_TURN, examined.last()) {
        tx.machine.sweep_position = Some(last.key().clone());
        tx.machine.background_work_pending = true;
    }
    for event in examined.iter().filter(is_old) {
        tx.remove(kind, event);
    }
}
