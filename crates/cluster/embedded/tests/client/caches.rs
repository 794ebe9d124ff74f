//! Caches of a server with injected faults.

use longshore_client::{Cache, kinds::ConfigMap};
use longshore_embedded::{FaultRule, WatchEnd, start_server};

use crate::common::{Churn, TIMEOUT, map, maps, soak, state, with_short_timeouts};

async fn settles(cache: &Cache<ConfigMap>, cluster: &longshore_client::Cluster) {
    let list = maps(cluster).list().await.unwrap();
    let wanted = state(list.items.iter().map(|map| (map.name(), map.version())));
    let settled = async {
        loop {
            let items = cache.items();
            let found = state(items.iter().map(|map| (map.name(), map.version())));
            if found == wanted {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, settled).await.unwrap();
    // The index and the objects are consistent.
    let snapshot = cache.snapshot();
    for part in ["0", "1", "2"] {
        let selected: longshore_client::LabelSelector = format!("part={part}").parse().unwrap();
        let plain = snapshot
            .iter()
            .filter(|map| selected.matches(&map.meta().labels));
        let plain: Vec<_> = plain.map(|map| map.name().to_owned()).collect();
        let found = snapshot.by_label("part", part);
        let found: Vec<_> = found.iter().map(|map| map.name().to_owned()).collect();
        assert_eq!(found, plain);
        assert_eq!(snapshot.matching(&selected).len(), plain.len());
    }
    assert_eq!(snapshot.by_namespace("default").count(), snapshot.len());
}

#[tokio::test]
async fn a_cache_equals_the_list_after_faults() {
    let embedded = start_server().await.unwrap();
    let cluster = embedded.cluster();
    let cache = maps(&with_short_timeouts(&cluster)).cache().await.unwrap();
    let ends = [
        WatchEnd::Close,
        WatchEnd::Break,
        WatchEnd::Stall,
        WatchEnd::Garble,
        WatchEnd::Expire,
    ];
    for (end, seed) in ends.into_iter().zip(1..) {
        let rule = FaultRule::watches(end)
            .resource("configmaps")
            .after_events(4);
        embedded.faults().add(rule.share(0.4, seed)).unwrap();
    }
    let busy = FaultRule::answer(429).verbs(["watch", "list"]);
    let busy = busy.resource("configmaps").share(0.3, 9);
    embedded.faults().add(busy).unwrap();
    let churn = Churn::start(&cluster);
    tokio::time::sleep(soak()).await;
    churn.stop().await;
    embedded.faults().clear();
    settles(&cache, &cluster).await;
    embedded.stop().await;
}

/// The embedded server supports watch lists: no list is requested for the first fill or after an
/// expired history.
#[tokio::test]
async fn watch_lists_are_used_where_supported() {
    let embedded = start_server().await.unwrap();
    let cluster = embedded.cluster();
    for number in 0..50 {
        let map = map(&format!("map-{number}"), number);
        maps(&cluster).create(&map).await.unwrap();
    }
    let rule = FaultRule::answer(500)
        .verbs(["list"])
        .resource("configmaps");
    let lists = embedded.faults().add(rule).unwrap();
    let cache = maps(&with_short_timeouts(&cluster)).cache().await.unwrap();
    assert_eq!(cache.len(), 50);
    let rule = FaultRule::watches(WatchEnd::Expire).resource("configmaps");
    let expired = embedded.faults().add(rule.times(1)).unwrap();
    maps(&cluster).create(&map("new", 1)).await.unwrap();
    let seen = async {
        while cache.get(Some("default"), "new").is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, seen).await.unwrap();
    assert_eq!(embedded.faults().fired(&expired), 1);
    assert_eq!(embedded.faults().get(&lists).unwrap().matched, 0);
    embedded.stop().await;
}
