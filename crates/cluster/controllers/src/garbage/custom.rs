//! Feeds the objects of custom kinds to the garbage collector while their
//! definitions exist.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::{
    StreamExt as _,
    future::{AbortHandle, Abortable},
    stream::FuturesUnordered,
};
use longshore_client::{Cache, Change, kinds::Any};
use longshore_model::KindInfo;

use super::collector::Collector;
use crate::{custom, progress};

/// The delay before another attempt to list a kind.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Watches definitions, and the objects of each kind that they define.
pub(super) async fn feed(collector: &Collector, definitions: Option<&Cache<Any>>) {
    let Some(definitions) = definitions else {
        return;
    };
    let mut changes = definitions.subscribe();
    let mut feeds = FuturesUnordered::new();
    let mut running: HashMap<String, (Arc<KindInfo>, AbortHandle)> = HashMap::new();
    loop {
        let change = tokio::select! {
            change = changes.next() => change,
            Some(_) = feeds.next(), if !feeds.is_empty() => continue,
        };
        let Some(change) = change else { return };
        let name = change.item().name().to_owned();
        let kind = match &change {
            Change::Upsert(item) => item.raw().ok().and_then(|value| custom::kind(&value)),
            Change::Gone(_) => None,
        };
        if let Some((known, handle)) = running.get(&name) {
            if kind.as_ref() == Some(&**known) {
                continue;
            }
            handle.abort();
            if matches!(change, Change::Gone(_)) {
                collector.forget(known);
            }
            running.remove(&name);
        }
        if let Some(kind) = kind.map(Arc::new) {
            let (handle, registration) = AbortHandle::new_pair();
            let one = feed_kind(collector, kind.clone(), false);
            feeds.push(Abortable::new(one, registration));
            running.insert(name, (kind, handle));
        }
    }
}

/// Watches the objects of a kind.
pub(super) async fn feed_kind(collector: &Collector, kind: Arc<KindInfo>, is_aggregated: bool) {
    collector.learn(&kind, is_aggregated);
    loop {
        match collector.view(&kind, None) {
            Ok(view) => match view.cache().await {
                Ok(cache) => {
                    let _followed = progress::follow(collector.clock(), kind.clone(), &cache);
                    return collector.feed(&kind, &cache).await;
                }
                Err(error) => {
                    tracing::debug!(kind = %kind.gvk.kind, %error, "cannot list the objects of a kind");
                }
            },
            Err(_) => return,
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}
