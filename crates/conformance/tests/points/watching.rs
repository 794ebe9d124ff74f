//! Points 17 to 20, and 26: watches.

use std::time::{Duration, Instant};

use longshore::client::{Error, WatchEvent, kinds::ConfigMap};

use crate::common::{Here, SOON};

#[tokio::test]
async fn point_17_a_watch_begins_now_or_at_a_version() {
    let here = Here::start().await;
    here.config_map("before").await;
    let view = here.view::<ConfigMap>().filter("called").unwrap();
    let version = view.list().await.unwrap().version;
    let mut from_now = view.watch().await.unwrap();
    here.config_map("a").await;
    let event = from_now.next(Some(SOON)).await.unwrap();
    assert_eq!(event.item().unwrap().name(), "a");
    let mut since = view.watch_since(&version).await.unwrap();
    assert_eq!(
        since.next(Some(SOON)).await.unwrap().item().unwrap().name(),
        "a"
    );
}

#[tokio::test]
async fn point_17_history_that_is_forgotten_is_told_by_a_resync() {
    let here = Here::alone().await;
    if here
        .test
        .is_without("its cache remembers what etcd has forgotten")
    {
        return;
    }
    let view = here.view::<ConfigMap>().filter("called").unwrap();
    let version = view.list().await.unwrap().version;
    here.config_map("a").await;
    here.test.expire_history().await;
    here.config_map("b").await;
    let mut watch = view.watch_since(&version).await.unwrap();
    match watch.next(Some(SOON)).await.unwrap() {
        WatchEvent::Resync(list) => assert_eq!(list.items.len(), 2),
        other => panic!("{other:?}"),
    }
    here.config_map("c").await;
    let event = watch.next(Some(SOON)).await.unwrap();
    assert_eq!(event.item().unwrap().name(), "c");
}

#[tokio::test]
async fn point_18_a_closed_watch_has_ended() {
    let here = Here::start().await;
    let mut watch = here.view::<ConfigMap>().watch().await.unwrap();
    watch.close();
    watch.close();
    assert!(matches!(watch.next(None).await, Err(Error::Closed)));
    // Closing the cluster ends those that wait.
    let mut watch = here.view::<ConfigMap>().watch().await.unwrap();
    here.cluster.close();
    assert!(watch.next(Some(SOON)).await.is_err());
}

#[tokio::test]
async fn point_19_next_waits_so_long_and_no_longer() {
    let here = Here::start().await;
    let view = here.view::<ConfigMap>().filter("called").unwrap();
    let mut watch = view.watch().await.unwrap();
    let start = Instant::now();
    for wait in [Duration::ZERO, Duration::from_millis(50)] {
        let timeout = watch.next(Some(wait)).await.unwrap_err();
        assert!(timeout.is_timeout(), "{timeout}");
    }
    assert!(start.elapsed() < SOON);
    // It goes on after that, and waits as long as it takes.
    let made = tokio::join!(watch.next(None), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        here.config_map("a").await
    });
    assert_eq!(made.0.unwrap().item(), Some(&made.1));
}

#[tokio::test]
async fn point_20_events_tell_what_happened() {
    let here = Here::start().await;
    let mut watch = here
        .view::<ConfigMap>()
        .filter("called")
        .unwrap()
        .watch()
        .await
        .unwrap();
    let map = here.config_map("a").await;
    let changed = map.labels().set("x", "1").await.unwrap();
    map.delete(&Default::default()).await.unwrap();
    let mut next = async || watch.next(Some(SOON)).await.unwrap();
    assert!(matches!(next().await, WatchEvent::Added(item) if item == map));
    assert!(matches!(next().await, WatchEvent::Modified(item) if item == changed));
    assert!(matches!(next().await, WatchEvent::Deleted(item) if item.uid() == map.uid()));
}

#[tokio::test]
async fn point_26_changes_of_one_item_after_its_version() {
    let here = Here::start().await;
    let old = here.config_map("a").await;
    here.config_map("b").await;
    let changed = old.labels().set("x", "1").await.unwrap();
    let mut watch = old.watch().await.unwrap();
    assert!(matches!(
        watch.next(Some(SOON)).await.unwrap(), WatchEvent::Modified(item) if item == changed
    ));
    here.view::<ConfigMap>()
        .delete("b", &Default::default())
        .await
        .unwrap();
    let newer = changed.labels().set("x", "2").await.unwrap();
    assert_eq!(watch.next(Some(SOON)).await.unwrap().item(), Some(&newer));
}
