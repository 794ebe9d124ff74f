//! Feeds the objects of aggregated API servers to the garbage collector while their
//! APIServices exist. As in Kubernetes, the kinds are discovered again and again, and the
//! kinds of a server that does not respond remain.

use std::{sync::Arc, time::Duration};

use futures::{
    StreamExt as _,
    future::{AbortHandle, Abortable},
    stream::FuturesUnordered,
};
use longshore_client::{Cache, kinds::Any};
use longshore_model::KindInfo;
use tokio::time::sleep;

use super::{collector::Collector, custom::feed_kind};
use crate::aggregated::{self, Aggregated};

/// How often the kinds are discovered again, as in Kubernetes.
const INTERVAL: Duration = Duration::from_secs(30);
/// The verbs that a kind needs.
const VERBS: [&str; 3] = ["delete", "list", "watch"];

/// A kind, and the handle of the feed of its objects.
type Feed = (Arc<KindInfo>, AbortHandle);

/// Watches APIServices, and the objects of each kind that their servers serve.
pub(super) async fn feed(collector: &Collector, services: Option<&Cache<Any>>) {
    let Some(services) = services else {
        return;
    };
    let mut changes = services.subscribe();
    let mut feeds = FuturesUnordered::new();
    let mut running: Vec<Feed> = Vec::new();
    loop {
        // All changes so far are seen by one discovery.
        while changes.try_next().is_some() {}
        match aggregated::discover(collector.cluster(), Some(services)).await {
            Ok(found) => {
                stop_others(collector, &found, &mut running);
                for kind in wanted(&found) {
                    if running.iter().any(|(known, _)| *known == kind) {
                        continue;
                    }
                    let (handle, registration) = AbortHandle::new_pair();
                    let one = feed_kind(collector, kind.clone(), true);
                    feeds.push(Abortable::new(one, registration));
                    running.push((kind, handle));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot discover the kinds of aggregated API servers");
            }
        }
        let has_services = !aggregated::versions(Some(services)).is_empty();
        let wait = sleep(INTERVAL);
        tokio::pin!(wait);
        loop {
            tokio::select! {
                change = changes.next() => match change {
                    Some(_) => break,
                    None => return,
                },
                Some(_) = feeds.next(), if !feeds.is_empty() => {}
                () = &mut wait, if has_services => break,
            }
        }
    }
}

/// The kinds whose objects can be collected.
fn wanted(found: &Aggregated) -> impl Iterator<Item = Arc<KindInfo>> {
    let collected =
        |kind: &&aggregated::AggregatedKind| VERBS.iter().all(|verb| kind.supports(verb));
    found
        .kinds
        .iter()
        .filter(collected)
        .map(|kind| kind.info.clone())
}

/// Stops the feeds of kinds that are no longer served.
fn stop_others(collector: &Collector, found: &Aggregated, running: &mut Vec<Feed>) {
    running.retain(|(kind, handle)| {
        let version = (kind.gvk.group.to_string(), kind.gvk.version.to_string());
        let remains =
            found.failed.contains(&version) || wanted(found).any(|wanted| wanted == *kind);
        if !remains {
            handle.abort();
            collector.unlearn(kind);
            collector.forget(kind);
        }
        remains
    });
}
