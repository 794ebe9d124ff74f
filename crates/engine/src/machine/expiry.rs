//! Events are kept for an hour after they were written last, as by Kubernetes'
//! lease on them, whatever times they tell. Old ones go when new ones are
//! written, a minute apart at the least, and a few at a time.

use std::{ops::Bound, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use longshore_model::time;
use serde::Deserialize;

use super::{SLICE, Transaction};
use crate::Object;

/// How long Events are kept.
const KEPT: SignedDuration = SignedDuration::from_hours(1);
/// How often old ones are looked for.
const PAUSE: SignedDuration = SignedDuration::from_mins(1);

/// When an Event was made and written.
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

/// When an Event was written last: each write is dated by its manager's entry.
fn written(event: &Object) -> Option<Timestamp> {
    let Times { metadata } = serde_json::from_slice(event.bytes()).ok()?;
    let entries = metadata.managed_fields.into_iter();
    entries
        .map(|entry| entry.time)
        .chain([metadata.creation_timestamp])
        .flatten()
        .filter_map(|text| time::parse(&text))
        .max()
}

/// Takes old Events away, the first of them at once: the others are a chore.
pub(super) fn sweep(tx: &mut Transaction<'_>) {
    // Not from a copy of the state: the writer does it.
    if tx.machine.writes.is_some() || !std::mem::take(&mut tx.machine.wrote_event) {
        return;
    }
    let swept = tx.machine.swept;
    let is_soon = swept.is_some_and(|swept| tx.now.duration_since(swept) < PAUSE);
    if is_soon || tx.machine.sweeping.is_some() {
        return;
    }
    tx.machine.swept = Some(tx.now);
    tx.machine.sweeping = Some("".into());
    go_on(tx);
}

/// Goes on to take old Events away.
pub(super) fn go_on(tx: &mut Transaction<'_>) {
    let now = tx.now;
    let Some(from) = tx.machine.sweeping.take() else {
        return;
    };
    let Some(kind) = tx.kinds().builtin_id("", "Event") else {
        return;
    };
    let is_old = |event: &&Arc<Object>| {
        written(event).is_some_and(|written| now.duration_since(written) > KEPT)
    };
    let from: (Bound<&str>, Bound<&str>) = (Bound::Excluded(&*from), Bound::Unbounded);
    let objects = tx.state().table(kind).objects.range::<_, str>(from);
    let looked_at: Vec<Arc<Object>> = objects
        .take(SLICE)
        .map(|(_, event)| event.clone())
        .collect();
    if let (true, Some(last)) = (looked_at.len() == SLICE, looked_at.last()) {
        tx.machine.sweeping = Some(last.key().clone());
        tx.machine.chores = true;
    }
    for event in looked_at.iter().filter(is_old) {
        tx.remove(kind, event);
    }
}
