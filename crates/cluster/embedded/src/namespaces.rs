//! Recreates deleted system namespaces, like kube-apiserver.

use std::time::Duration;

use longshore_client::{Cluster, Error};
use serde_json::json;

/// The system namespaces.
const SYSTEM: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
/// Interval at which the namespaces are checked.
const INTERVAL: Duration = Duration::from_secs(10);

/// Recreates deleted system namespaces until the future is dropped.
pub(crate) async fn keep(cluster: Cluster) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        for name in SYSTEM {
            if let Err(error) = ensure(&cluster, name).await {
                tracing::warn!(%error, namespace = name, "cannot create a system namespace");
            }
        }
    }
}

/// Creates a namespace if it does not exist.
async fn ensure(cluster: &Cluster, name: &str) -> Result<(), Error> {
    let namespaces = cluster.namespaces();
    if namespaces.find(name).await?.is_some() {
        return Ok(());
    }
    let namespace = json!({"metadata": {"name": name}});
    match namespaces.create(&namespace).await {
        Err(error) if !error.is_already_exists() => Err(error),
        _ => Ok(()),
    }
}
