//! The garbage collector's loop: watches every kind.

use std::sync::Arc;

use longshore_client::Cluster;

use super::{aggregated, collector::Collector, custom};
use crate::{aggregated::services, caches::Caches, events::Recorder};

/// Runs the garbage collector until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, recorder: Recorder) {
    let collector = Collector::new(cluster, &caches.clock, recorder);
    let others = caches
        .others
        .iter()
        .map(|(kind, cache)| collector.feed(kind, cache));
    let feeds = async {
        futures::join!(
            collector.feed_builtin(&caches.nodes),
            collector.feed_builtin(&caches.namespaces),
            collector.feed_builtin(&caches.service_accounts),
            collector.feed_builtin(&caches.jobs),
            collector.feed_builtin(&caches.pods),
            futures::future::join_all(others),
            custom::feed(&collector, caches.definitions()),
            aggregated::feed(&collector, services(&caches)),
        )
    };
    collector.work(feeds).await;
}
