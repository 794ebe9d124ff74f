//! Ends what is left of finished runs that have no follower: the embedded
//! cluster does for its runs what a follower, or a JobSet, does on any cluster.
//! Without it a parameter server of a run whose terminal was closed would keep
//! its cluster for ever.

use std::time::Duration;

use longshore::{
    client::{Cluster, LabelSelector},
    launcher::{names, runs},
};

/// How long a follower of the run has to do it first, and how long a burst of
/// changes is waited out.
const GRACE: Duration = Duration::from_secs(3);
/// How soon to try again after an error.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Works until the cluster ends.
pub(crate) async fn stop_them(cluster: Cluster) {
    let cluster = cluster.with_user_agent("longshore-leftovers");
    while let Err(error) = watch(&cluster).await {
        if cluster.is_closed() {
            return;
        }
        tracing::warn!(%error, "cannot end what is left of runs that are over; trying again");
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

async fn watch(cluster: &Cluster) -> Result<(), runs::RunsError> {
    let ours = LabelSelector::exactly([(names::MANAGED_BY, names::LONGSHORE)])
        .map_err(longshore::client::Error::from)?;
    let cache = cluster.jobs().labels(ours).cache().await?;
    let mut changes = cache.subscribe();
    while changes.next().await.is_some() {
        tokio::time::sleep(GRACE).await;
        while changes.try_next().is_some() {}
        let stopped = runs::stop_leftovers(cluster, jiff::Timestamp::now()).await?;
        if stopped > 0 {
            tracing::info!(jobs = stopped, "ended what was left of runs that are over");
        }
    }
    Ok(())
}
