//! Deletes old PodCertificateRequests. Nodes create a new request if they need a certificate.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use longshore_client::{Cluster, Error, Item, kinds::Any};
use serde_json::json;

use super::GROUP;
use crate::{
    caches::Caches,
    key::Key,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "podcertificaterequest-cleaner";
/// The number of workers.
const WORKERS: usize = 1;
/// The lifetime of requests with or without a certificate.
const MAX_AGE: SignedDuration = SignedDuration::from_mins(15);

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>) {
    let Some((_, requests)) = caches.of(GROUP, "PodCertificateRequest") else {
        return;
    };
    let queue: Queue<Key> = Queue::new(&caches.clock);
    let feeds = feed(NAME, requests, |key, _| queue.add(key));
    let reconcile = async |key: Key| match requests.get(Some(&key.namespace), &key.name) {
        Some(item) => clean(&cluster, &item, caches.clock.now()).await,
        None => Ok(Next::Done),
    };
    reconcile::run(NAME, WORKERS, &queue, feeds, reconcile).await;
}

/// Deletes a request if it is old.
async fn clean(cluster: &Cluster, item: &Item<Any>, now: Timestamp) -> Result<Next, Error> {
    let created = item.meta().creation_timestamp;
    let Some(end) = created.and_then(|created| created.checked_add(MAX_AGE).ok()) else {
        return Ok(Next::Done);
    };
    if let Ok(wait) = Duration::try_from(end.duration_since(now))
        && !wait.is_zero()
    {
        return Ok(Next::After(wait));
    }
    let (namespace, name) = (item.namespace().unwrap_or_default(), item.name());
    let path = format!("/apis/{GROUP}/v1/namespaces/{namespace}/podcertificaterequests/{name}");
    let options = json!({"preconditions": {"uid": item.meta().uid}});
    match cluster.proxy().delete(path, &[], Some(&options)).await {
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(Next::Done),
        deleted => deleted.map(|_| Next::Done),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_apiserver::{ApiServer, NoLogs, NoStreams};
    use longshore_engine::Engine;

    use super::*;

    /// An empty request with a key of the curve P-256, by OpenSSL.
    const PKCS10: &str = "\
        MIG7MGICAQAwADBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABD/kjTaH2Puh91Pnm+LCfW9g3E1I+Zo4mzOk\
        MFb5FNKbMm4Y/W1miYssQpTujO4tcXzwwAbzaCcMyQTtw1vP/QKgADAKBggqhkjOPQQDAgNJADBGAiEA0VsG\
        +G+GzHWknuhU+sEloRFCvu7ZGXwlg/k8ePvscKMCIQDdKsAaM088NejvMAha2FQQXrXmIiAvfkSHvxrWtj6L\
        3Q==";

    #[tokio::test]
    async fn requests_are_deleted_after_15_minutes() {
        let server = ApiServer::new(longshore_apiserver::Options {
            engine: Engine::open(longshore_engine::Options::default()).unwrap(),
            token: None,
            authorization: longshore_apiserver::AuthorizationMode::Rbac,
            token_key: None,
            node_logs: Arc::new(NoLogs),
            node_streams: Arc::new(NoStreams),
            faults: false,
            warn_unhandled_kinds: false,
        });
        let cluster = Cluster::from_service(server.service(), "default");
        let requests = cluster.kind("podcertificaterequests").await.unwrap();
        let requests = requests.in_namespace("default").unwrap();
        let request = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "PodCertificateRequest",
            "metadata": {"name": "r"},
            "spec": {
                "signerName": "a.example/signer", "podName": "p", "podUID": "1",
                "serviceAccountName": "default", "serviceAccountUID": "2",
                "nodeName": "n", "nodeUID": "3", "stubPKCS10Request": PKCS10,
            },
        });
        let item = requests.create(&request).await.unwrap();
        let later = |minutes| Timestamp::now() + SignedDuration::from_mins(minutes);
        let next = clean(&cluster, &item, later(14)).await.unwrap();
        assert!(matches!(next, Next::After(wait) if wait <= Duration::from_mins(1)));
        assert!(requests.find("r").await.unwrap().is_some());
        let next = clean(&cluster, &item, later(15)).await.unwrap();
        assert!(matches!(next, Next::Done));
        assert!(requests.find("r").await.unwrap().is_none());
        // Another controller may have deleted it.
        let next = clean(&cluster, &item, later(15)).await.unwrap();
        assert!(matches!(next, Next::Done));
    }
}
