//! Removes the outputs of runs that no longer exist, while a cluster runs.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use longshore_client::Cluster;

use crate::{outputs::Outputs, runs};

/// The interval between checks of the folder.
const POLL_INTERVAL: Duration = Duration::from_secs(60);

/// Removes the outputs of runs that no longer exist until the cluster ends.
pub async fn keep(cluster: Cluster, outputs: Outputs) {
    let cluster = cluster.with_user_agent("longshore-outputs");
    while !cluster.is_closed() {
        match round(&cluster, &outputs).await {
            Err(_) if cluster.is_closed() => return,
            Err(error) => {
                let folder = outputs.root().display();
                tracing::warn!(%error, %folder, "cannot remove old outputs; trying again");
            }
            Ok(0) => {}
            Ok(bytes) => tracing::info!(bytes, "removed outputs of runs that no longer exist"),
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn round(
    cluster: &Cluster,
    outputs: &Outputs,
) -> Result<u64, Box<dyn std::error::Error + Send + Sync>> {
    let now = SystemTime::now();
    if !outputs.has_old(now)? {
        return Ok(0);
    }
    let existing = runs::list(cluster, None).await?;
    let existing: BTreeSet<(String, String)> = existing
        .iter()
        .map(|run| (run.run.namespace.clone(), run.run.name.to_string()))
        .collect();
    let outputs = outputs.clone();
    let work = move || outputs.remove_old(&existing, now);
    Ok(tokio::task::spawn_blocking(work).await??)
}
