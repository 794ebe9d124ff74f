//! Stops the rest of a run whose outcome is decided.

use jiff::Timestamp;
use longshore_client::Cluster;
use longshore_diagnosis::{evidence::JobEvidence, outcome::Ending};

use super::outage;
use crate::{run::Run, runs};

/// Stops the Jobs that are still active.
pub(super) async fn stop_rest(
    cluster: &Cluster,
    run: &Run,
    mut active: Vec<&JobEvidence>,
    decided: &runs::Decided,
    now: Timestamp,
) {
    match decided.outcome.ending {
        Ending::Cancelled => return,
        // A JobSet stops its service roles by itself.
        Ending::Succeeded => active.retain(|job| job.jobset().is_none()),
        Ending::Failed | Ending::NotStarted => {}
    }
    let stop = || runs::stop_decided(cluster, run, &active, decided, now);
    if let Err(error) = outage::retry(stop).await {
        tracing::warn!(%error, "cannot stop a role of the ended run");
    }
}
