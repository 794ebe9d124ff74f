//! Events are kept for an hour after they were written last, as by Kubernetes'
//! lease on them, whatever times they tell. Old ones go when new ones are
//! written, a minute apart at the most.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use longshore_model::time;
use serde::Deserialize;

use super::Transaction;
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

/// Takes old Events away.
pub(super) fn sweep(tx: &mut Transaction<'_>) {
    if !std::mem::take(&mut tx.machine.wrote_event) {
        return;
    }
    let now = tx.now;
    let swept = tx.machine.swept;
    if swept.is_some_and(|swept| now.duration_since(swept) < PAUSE) {
        return;
    }
    tx.machine.swept = Some(now);
    let Some(kind) = tx.kinds().builtin_id("", "Event") else {
        return;
    };
    let is_old = |event: &&Arc<Object>| {
        written(event).is_some_and(|written| now.duration_since(written) > KEPT)
    };
    let objects = tx.state().table(kind).objects.values();
    let old: Vec<Arc<Object>> = objects.filter(is_old).cloned().collect();
    for event in old {
        tx.remove(kind, &event);
    }
}
