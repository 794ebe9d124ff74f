//! Stops the rest of a run whose outcome is decided.

use jiff::Timestamp;
use longshore_client::Cluster;
use longshore_diagnosis::{
    evidence::JobEvidence,
    outcome::{Ending, Outcome},
};

use super::outage;
use crate::{run::Run, runs};

/// Records the outcome if it cannot be read from the Jobs and pods later, and stops the Jobs that
/// are still active. Returns the outcome that another client has recorded before.
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
    let mut recorded = None;
    if is_recorded {
        let record = || runs::record_end(cluster, run, &decided.outcome, now);
        match outage::retry(record).await {
            Ok(known) => recorded = known,
            Err(error) => tracing::warn!(%error, "cannot record the end of the run"),
        }
    }
    stop_jobs(cluster, run, &active, decided, now).await;
    recorded
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
