//! Feeds the objects of aggregated API servers to the garbage collector while their APIServices
//! exist. As in Kubernetes, the kinds are discovered repeatedly, and the kinds of a server that
//! does not respond remain.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{
    StreamExt as _,
    future::{AbortHandle, Abortable},
    stream::FuturesUnordered,
};
use longshore_client::{Cache, Change, kinds::Any};
use longshore_model::KindInfo;
use tokio::time::sleep;

use super::{collector::Collector, custom::feed_kind};
use crate::aggregated::{self, Aggregated, GroupVersion};

/// The interval at which the kinds are discovered, as in Kubernetes.
const INTERVAL: Duration = Duration::from_secs(30);
/// The verbs that a collected kind must support.
const VERBS: [&str; 3] = ["delete", "list", "watch"];

/// A kind, and the handle of the feed of its objects.
type Feed = (Arc<KindInfo>, AbortHandle);

/// Watches APIServices, and the objects of each kind that their servers serve.
pub(super) async fn feed(collector: &Collector, services: Option<&Cache<Any>>) {
    let Some(services) = services else {
        return;
    };
    let mut changes = services.subscribe();
    let mut versions: BTreeMap<String, GroupVersion> = BTreeMap::new();
    let mut feeds = FuturesUnordered::new();
    let mut running: Vec<Feed> = Vec::new();
    loop {
        // A single discovery handles all changes so far.
        while let Some(change) = changes.try_next() {
            note(&mut versions, &change);
        }
        let wanted_versions = versions.values().cloned().collect();
        match aggregated::discover(collector.cluster(), &wanted_versions).await {
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
        let wait = sleep(INTERVAL);
        tokio::pin!(wait);
        loop {
            tokio::select! {
                change = changes.next() => {
                    let Some(change) = change else { return };
                    note(&mut versions, &change);
                    break;
                }
                Some(_) = feeds.next(), if !feeds.is_empty() => {}
                () = &mut wait, if !wanted_versions.is_empty() => break,
            }
        }
    }
}

/// Keeps the versions of aggregated API servers by the names of their APIServices.
fn note(versions: &mut BTreeMap<String, GroupVersion>, change: &Change<Any>) {
    let service = change.item();
    let version = match change {
        Change::Upsert(service) => aggregated::version(service),
        Change::Gone(_) => None,
    };
    match version {
        Some(version) => versions.insert(service.name().to_owned(), version),
        None => versions.remove(service.name()),
    };
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
