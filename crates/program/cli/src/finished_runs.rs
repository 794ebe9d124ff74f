//! Stops the remaining Jobs of finished runs without a follower, and ends pods whose command has
//! ended while another container keeps running. On other clusters, a follower or JobSet does this.
//! Otherwise, the parameter server of a run whose terminal was closed would keep an on-demand
//! cluster running forever.

use std::time::Duration;

use longshore::{
    client::{Cluster, LabelSelector},
    launcher::{names, runs},
};

/// The delay that gives a follower time to act first, and that batches bursts of changes.
const GRACE: Duration = Duration::from_secs(3);
/// The retry interval after an error.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Runs until the cluster ends.
pub(crate) async fn stop_leftovers(cluster: Cluster) {
    let cluster = cluster.with_user_agent("longshore-leftovers");
    let jobs = async {
        while let Err(error) = watch(&cluster).await {
            if cluster.is_closed() {
                return;
            }
            tracing::warn!(%error, "cannot stop the remaining Jobs of finished runs; retrying");
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    };
    let pods = async {
        while let Err(error) = runs::end_lingering(&cluster).await {
            if cluster.is_closed() {
                return;
            }
            tracing::warn!(%error, "cannot end pods whose command has ended; retrying");
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    };
    tokio::join!(jobs, pods);
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
            tracing::info!(
                jobs = stopped,
                "stopped the remaining Jobs of finished runs"
            );
        }
    }
    Ok(())
}
