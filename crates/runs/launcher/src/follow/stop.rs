//! Stops the rest of a run whose outcome is decided.

use jiff::Timestamp;
use longshore_client::Cluster;
use longshore_diagnosis::{
    evidence::JobEvidence,
    outcome::{Ending, Outcome},
    track,
};

use super::outage;
use crate::{run::Run, runs};

/// Records the outcome if it cannot be read from the Jobs and pods later, and stops the Jobs that
/// are still active. Returns the outcome that another client has recorded before, or the
/// cancellation of the run.
pub(super) async fn stop_rest(
    cluster: &Cluster,
    run: &Run,
    mut active: Vec<&JobEvidence>,
    lingers: bool,
    decided: &runs::Decided,
    now: Timestamp,
) -> Option<Outcome> {
    let is_recorded = match decided.outcome.ending {
        Ending::Cancelled => return None,
        Ending::Succeeded => !active.is_empty() || lingers,
        Ending::Failed | Ending::NotStarted => true,
    };
    if decided.outcome.ending == Ending::Succeeded {
        // A JobSet stops its service roles by itself.
        active.retain(|job| job.jobset().is_none() || !run.is_service(job));
    }
    // The watch of the Jobs may not have seen that another client has cancelled the run.
    let known = outage::retry(|| async move {
        if is_recorded {
            return runs::record_end(cluster, run, &decided.outcome, now).await;
        }
        let jobs = run.found_jobs(cluster).await?;
        Ok(track::known_end(&jobs))
    });
    let known = known.await.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot record the end of the run");
        None
    });
    if !matches!(&known, Some(known) if known.ending == Ending::Cancelled) {
        stop_jobs(cluster, run, &active, decided, now).await;
    }
    known
}

/// Stops Jobs.
pub(super) async fn stop_jobs(
    cluster: &Cluster,
    run: &Run,
    jobs: &[&JobEvidence],
    decided: &runs::Decided,
    now: Timestamp,
) {
    let stop = || runs::stop_decided(cluster, run, jobs, decided, now);
    if let Err(error) = outage::retry(stop).await {
        tracing::warn!(%error, "cannot stop a role of the ended run");
    }
}
