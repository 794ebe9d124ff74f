//! Creates the service account `default` in each namespace.

use std::sync::Arc;

use futures::future;
use longshore_client::{Change, Cluster, Error};
use serde_json::json;

use crate::{
    caches::Caches,
    queue::{Next, Queue},
    reconcile::{self, feed},
    refusal::is_terminating,
};

/// The controller's name in the log.
const NAME: &str = "serviceaccount";
/// The name of the service account.
const ACCOUNT: &str = "default";
/// The number of workers.
const WORKERS: usize = 1;

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>) {
    let queue: Queue<String> = Queue::new(&caches.clock);
    let accounts = feed(NAME, &caches.service_accounts, |key, change| {
        if matches!(change, Change::Gone(_)) {
            queue.add(key.namespace);
        }
    });
    let namespaces = feed(NAME, &caches.namespaces, |_, change| {
        if let Change::Upsert(item) = change {
            queue.add(item.name().to_owned());
        }
    });
    let feeds = future::join(accounts, namespaces);
    let reconcile = async |namespace: String| {
        let known = caches.namespaces.get(None, &namespace);
        let is_active = known.is_some_and(|item| item.meta().deletion_timestamp.is_none());
        let account = caches.service_accounts.get(Some(&namespace), ACCOUNT);
        if is_active && account.is_none() {
            create(&cluster, &namespace).await?;
        }
        Ok::<_, Error>(Next::Done)
    };
    reconcile::run(NAME, WORKERS, &queue, feeds, reconcile).await;
}

async fn create(cluster: &Cluster, namespace: &str) -> Result<(), Error> {
    let accounts = cluster.serviceaccounts().in_namespace(namespace)?;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT},
    });
    match accounts.create(&account).await {
        Err(error)
            if error.is_already_exists() || error.is_not_found() || is_terminating(&error) =>
        {
            Ok(())
        }
        done => done.map(drop),
    }
}
