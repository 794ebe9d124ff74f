//! Points 17 to 20, and 26: watches.

use std::time::{Duration, Instant};

use longshore::client::{Error, WatchEvent, kinds::ConfigMap};

use crate::common::{Fixture, TIMEOUT};

#[tokio::test]
async fn point_17_a_watch_starts_now_or_at_a_resource_version() {
    let fixture = Fixture::start().await;
    fixture.config_map("before").await;
    let view = fixture.view::<ConfigMap>().filter("called").unwrap();
    let version = view.list().await.unwrap().version;
    let mut from_now = view.watch().await.unwrap();
    fixture.config_map("a").await;
    let event = from_now.next(Some(TIMEOUT)).await.unwrap();
    assert_eq!(event.item().unwrap().name(), "a");
    let mut since = view.watch_since(&version).await.unwrap();
    assert_eq!(
        since
            .next(Some(TIMEOUT))
            .await
            .unwrap()
            .item()
            .unwrap()
            .name(),
        "a"
    );
}

#[tokio::test]
async fn point_17_a_compacted_resource_version_causes_a_resync() {
    let fixture = Fixture::exclusive().await;
    if fixture
        .test
        .skip_on_real("immediate expiry of compacted revisions")
    {
        return;
    }
    let view = fixture.view::<ConfigMap>().filter("called").unwrap();
    let version = view.list().await.unwrap().version;
    fixture.config_map("a").await;
    fixture.test.expire_history().await;
    fixture.config_map("b").await;
    let mut watch = view.watch_since(&version).await.unwrap();
    match watch.next(Some(TIMEOUT)).await.unwrap() {
        WatchEvent::Resync(list) => assert_eq!(list.items.len(), 2),
        other => panic!("{other:?}"),
    }
    fixture.config_map("c").await;
    let event = watch.next(Some(TIMEOUT)).await.unwrap();
    assert_eq!(event.item().unwrap().name(), "c");
}

#[tokio::test]
async fn point_18_a_closed_watch_ends() {
    let fixture = Fixture::start().await;
    let mut watch = fixture.view::<ConfigMap>().watch().await.unwrap();
    watch.close();
    watch.close();
    assert!(matches!(watch.next(None).await, Err(Error::Closed)));
    // Closing the cluster ends pending watches.
    let mut watch = fixture.view::<ConfigMap>().watch().await.unwrap();
    fixture.cluster.close();
    assert!(watch.next(Some(TIMEOUT)).await.is_err());
}

#[tokio::test]
async fn point_19_next_times_out() {
    let fixture = Fixture::start().await;
    let view = fixture.view::<ConfigMap>().filter("called").unwrap();
    let mut watch = view.watch().await.unwrap();
    let start = Instant::now();
    for wait in [Duration::ZERO, Duration::from_millis(50)] {
        let timeout = watch.next(Some(wait)).await.unwrap_err();
        assert!(timeout.is_timeout(), "{timeout}");
    }
    assert!(start.elapsed() < TIMEOUT);
    // The watch continues after a timeout; without a timeout it waits indefinitely.
    let made = tokio::join!(watch.next(None), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        fixture.config_map("a").await
    });
    assert_eq!(made.0.unwrap().item(), Some(&made.1));
}

#[tokio::test]
async fn point_20_events_have_the_type_of_the_change() {
    let fixture = Fixture::start().await;
    let mut watch = fixture
        .view::<ConfigMap>()
        .filter("called")
        .unwrap()
        .watch()
        .await
        .unwrap();
    let map = fixture.config_map("a").await;
    let changed = map.labels().set("x", "1").await.unwrap();
    map.delete(&Default::default()).await.unwrap();
    let mut next = async || watch.next(Some(TIMEOUT)).await.unwrap();
    assert!(matches!(next().await, WatchEvent::Added(item) if item == map));
    assert!(matches!(next().await, WatchEvent::Modified(item) if item == changed));
    assert!(matches!(next().await, WatchEvent::Deleted(item) if item.uid() == map.uid()));
}

#[tokio::test]
async fn point_26_an_item_can_be_watched_from_its_resource_version() {
    let fixture = Fixture::start().await;
    let old = fixture.config_map("a").await;
    fixture.config_map("b").await;
    let changed = old.labels().set("x", "1").await.unwrap();
    let mut watch = old.watch().await.unwrap();
    assert!(matches!(
        watch.next(Some(TIMEOUT)).await.unwrap(), WatchEvent::Modified(item) if item == changed
    ));
    fixture
        .view::<ConfigMap>()
        .delete("b", &Default::default())
        .await
        .unwrap();
    let newer = changed.labels().set("x", "2").await.unwrap();
    assert_eq!(
        watch.next(Some(TIMEOUT)).await.unwrap().item(),
        Some(&newer)
    );
}
