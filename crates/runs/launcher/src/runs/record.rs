//! Records the end of a run on its Jobs, so that all clients report the same end, even after the
//! pods that show it are deleted.

use jiff::Timestamp;
use longshore_client::{Cluster, Error, Patch};
use longshore_diagnosis::{
    names,
    outcome::{End, Ending, Outcome},
    track,
};
use serde_json::{Value, json};

use super::Run;

/// The number of attempts while other clients change the Job.
const ATTEMPTS: u32 = 10;

/// Records the end of a run on its first Job, before pods are stopped. The first recorded end
/// decides: returns the outcome that another client has recorded, or the cancellation of the run.
pub(crate) async fn record_end(
    cluster: &Cluster,
    run: &Run,
    outcome: &Outcome,
    now: Timestamp,
) -> Result<Option<Outcome>, Error> {
    if !matches!(outcome.ending, Ending::Succeeded | Ending::Failed) {
        return Ok(None);
    }
    let view = cluster.jobs().in_namespace(&run.namespace)?;
    for _ in 0..ATTEMPTS {
        let jobs = run.found_jobs(cluster).await?;
        if let Some(known) = track::known_end(&jobs) {
            return Ok(Some(known));
        }
        let Some(first) = jobs.iter().min_by_key(|job| &job.metadata.name) else {
            return Ok(None);
        };
        // The patch fails if the Job has changed meanwhile.
        let change = Patch::merge(json!({"metadata": {
            "resourceVersion": first.metadata.resource_version,
            "annotations": notes(outcome, now),
        }}));
        match view.patch(&first.metadata.name, &change).await {
            Ok(_) => return Ok(None),
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The annotations of Jobs that are stopped because their run ended.
pub(crate) fn notes(outcome: &Outcome, now: Timestamp) -> Value {
    let mut notes = json!({names::STOPPED: format!("{now}: {}", outcome.reason)});
    let why = outcome.explanation.as_ref();
    if let Some(why) = why.and_then(|why| serde_json::to_string(why).ok()) {
        notes[names::WHY] = why.into();
    }
    let end = End {
        ending: outcome.ending,
        exit_code: outcome.exit_code,
        finished: outcome.finished,
    };
    if let Ok(end) = serde_json::to_string(&end) {
        notes[names::ENDED] = end.into();
    }
    notes
}
