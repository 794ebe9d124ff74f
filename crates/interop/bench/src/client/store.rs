//! Fills caches with all pods of a server.

use std::{path::Path, time::Instant};

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube_client::Api;
use kube_core::metadata::PartialObjectMeta;
use kube_runtime::{
    reflector,
    watcher::{self, Config, Event, watcher},
};
use longshore::Cluster;

use super::contender::Contender;
use crate::report::Failure;

/// Returns the duration in seconds, including the connection, and the number of pods.
pub(super) async fn run(
    contender: Contender,
    source: &Path,
    count: usize,
) -> Result<(f64, usize), Failure> {
    let started = Instant::now();
    let cluster = Cluster::from_kubeconfig(Some(source), None).await?;
    let seen = match contender {
        Contender::Typed => {
            let (store, writer) = reflector::store::<Pod>();
            let api = Api::namespaced(cluster.kube_client(), "default");
            let events = reflector(writer, watcher(api, Config::default()));
            until_filled(events).await?;
            store.state().len()
        }
        Contender::Metadata => {
            let (store, writer) = reflector::store::<PartialObjectMeta<Pod>>();
            let api = Api::namespaced(cluster.kube_client(), "default");
            let events = reflector(writer, watcher(api, Config::default()));
            until_filled(events).await?;
            store.state().len()
        }
        _ => {
            let cache = cluster.pods().in_namespace("default")?.cache().await?;
            // All pods have this label. The lookup uses the cache's index.
            cache.by_label("app", "worker").len().min(count)
        }
    };
    Ok((started.elapsed().as_secs_f64(), seen))
}

async fn until_filled<K>(
    events: impl Stream<Item = Result<Event<K>, watcher::Error>>,
) -> Result<(), Failure> {
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        if matches!(event?, Event::InitDone) {
            return Ok(());
        }
    }
    Err("the watch has ended".into())
}
