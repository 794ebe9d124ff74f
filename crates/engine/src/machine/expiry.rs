//! Events are kept for an hour after they happened last. Old ones go when new
//! ones are written, a minute apart at the most.

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

/// The times of an Event.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Times {
    event_time: Option<String>,
    last_timestamp: Option<String>,
    series: Option<Series>,
    metadata: Made,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Series {
    last_observed_time: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Made {
    creation_timestamp: Option<String>,
}

/// When an Event happened last, as far as it says.
fn happened(event: &Object) -> Option<Timestamp> {
    let times: Times = serde_json::from_slice(event.bytes()).ok()?;
    let series = times.series.and_then(|series| series.last_observed_time);
    [
        times.event_time,
        times.last_timestamp,
        series,
        times.metadata.creation_timestamp,
    ]
    .into_iter()
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
        happened(event).is_some_and(|happened| now.duration_since(happened) > KEPT)
    };
    let objects = tx.state().table(kind).objects.values();
    let old: Vec<Arc<Object>> = objects.filter(is_old).cloned().collect();
    for event in old {
        tx.remove(kind, &event);
    }
}
