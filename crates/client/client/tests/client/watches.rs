//! Watches and waits, on a fake API server.

use std::time::Duration;

use futures::StreamExt;

use crate::fake::{Answer, End, Fake, bookmark, event, list, no_watch_lists, pod, status};
use longshore_client::{Error, Item, Watch, WatchEvent, kinds::Pod};
use serde_json::json;

const TIMEOUT: Option<Duration> = Some(Duration::from_secs(20));

async fn next(watch: &mut Watch<Pod>) -> String {
    let describe =
        |what: &str, item: &Item<Pod>| format!("{what} {}@{}", item.name(), item.version());
    match watch.next(TIMEOUT).await.unwrap() {
        WatchEvent::Added(item) => describe("added", &item),
        WatchEvent::Modified(item) => describe("modified", &item),
        WatchEvent::Deleted(item) => describe("deleted", &item),
        WatchEvent::Resync(list) => {
            let names: Vec<&str> = list.items.iter().map(Item::name).collect();
            format!("resync {}@{}", names.join(","), list.version)
        }
    }
}

#[tokio::test]
async fn a_watch_starts_at_the_current_version_and_requests_bookmarks() {
    let fake = Fake::new([
        Answer::json(200, &list(5, &[pod("old", 2)])),
        Answer::events(
            &[event("ADDED", &pod("a", 6)), event("DELETED", &pod("a", 7))],
            End::Silent,
        ),
    ]);
    let mut watch = fake
        .cluster()
        .pods()
        .in_namespace("n")
        .unwrap()
        .watch()
        .await
        .unwrap();
    assert_eq!(next(&mut watch).await, "added a@6");
    assert_eq!(next(&mut watch).await, "deleted a@7");
    let seen = fake.requests();
    assert_eq!(seen[1].query("resourceVersion"), Some("5"));
    assert_eq!(seen[1].query("allowWatchBookmarks"), Some("true"));
    assert_eq!(seen[1].query("watch"), Some("true"));
}

#[tokio::test]
async fn a_watch_resumes_after_ends_breaks_and_outages() {
    let fake = Fake::new([
        Answer::events(&[event("ADDED", &pod("a", 6)), bookmark(9)], End::Clean),
        // A truncated line is dropped and received again.
        Answer::Lines(
            vec![
                format!("{}\n", event("ADDED", &pod("b", 10))),
                "{\"type\":\"ADD".into(),
            ],
            End::Broken,
        ),
        Answer::Refused,
        Answer::status(500, "InternalError", "etcd is away"),
        Answer::events(&[event("ADDED", &pod("c", 11))], End::Silent),
    ]);
    let mut watch = fake.cluster().pods().watch_since("5").await.unwrap();
    assert_eq!(next(&mut watch).await, "added a@6");
    assert_eq!(next(&mut watch).await, "added b@10");
    assert_eq!(next(&mut watch).await, "added c@11");
    let seen = fake.requests();
    let versions: Vec<_> = seen
        .iter()
        .map(|seen| seen.query("resourceVersion").unwrap())
        .collect();
    assert_eq!(versions, ["5", "9", "10", "10", "10"]);
}

#[tokio::test]
async fn expired_history_is_a_resync() {
    let fake = Fake::new([
        // In the response …
        Answer::status(410, "Expired", "too old resource version"),
        no_watch_lists(),
        Answer::json(200, &list(20, &[pod("x", 15)])),
        // … and in the stream.
        Answer::events(
            &[
                event("MODIFIED", &pod("x", 21)),
                event("ERROR", &status(410, "Expired", "too old")),
            ],
            End::Clean,
        ),
        Answer::status(503, "ServiceUnavailable", "busy"),
        Answer::json(200, &list(30, &[pod("y", 29)])),
        Answer::events(&[event("ADDED", &pod("z", 31))], End::Silent),
    ]);
    let mut watch = fake.cluster().pods().watch_since("1").await.unwrap();
    assert_eq!(next(&mut watch).await, "resync x@20");
    assert_eq!(next(&mut watch).await, "modified x@21");
    assert_eq!(next(&mut watch).await, "resync y@30");
    assert_eq!(next(&mut watch).await, "added z@31");
    assert_eq!(
        fake.requests().last().unwrap().query("resourceVersion"),
        Some("30")
    );
}

#[tokio::test]
async fn a_silent_connection_is_replaced() {
    let fake = Fake::new([
        Answer::events(&[], End::Silent),
        Answer::events(&[event("ADDED", &pod("a", 6))], End::Silent),
    ]);
    let mut watch = fake.cluster().pods().watch_since("5").await.unwrap();
    assert_eq!(next(&mut watch).await, "added a@6");
}

#[tokio::test]
async fn a_timeout_loses_no_event() {
    let fake = Fake::new([
        Answer::events(&[], End::Silent),
        Answer::events(&[event("ADDED", &pod("a", 6))], End::Silent),
    ]);
    let mut watch = fake.cluster().pods().watch_since("5").await.unwrap();
    let error = watch.next(Some(Duration::ZERO)).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(next(&mut watch).await, "added a@6");
}

#[tokio::test]
async fn a_lost_permission_ends_the_watch_with_an_error() {
    let fake = Fake::new([
        Answer::events(&[event("ADDED", &pod("a", 6))], End::Clean),
        Answer::status(403, "Forbidden", "no more"),
    ]);
    let mut watch = fake.cluster().pods().watch_since("5").await.unwrap();
    assert_eq!(next(&mut watch).await, "added a@6");
    assert!(watch.next(TIMEOUT).await.unwrap_err().is_forbidden());
    assert!(matches!(watch.next(TIMEOUT).await, Err(Error::Closed)));
}

#[tokio::test]
async fn a_stream_that_has_ended_stays_ended() {
    let fake = Fake::new([
        Answer::events(&[event("ADDED", &pod("a", 6))], End::Clean),
        Answer::status(403, "Forbidden", "no more"),
    ]);
    let mut watch = fake.cluster().pods().watch_since("5").await.unwrap();
    let seen: Vec<_> = (&mut watch).collect().await;
    assert!(matches!(&seen[..], [Ok(_), Err(error)] if error.is_forbidden()));
    assert!(StreamExt::next(&mut watch).await.is_none());
    assert!(StreamExt::next(&mut watch).await.is_none());
}

#[tokio::test]
async fn rejected_credentials_are_retried_once() {
    let unauthorized = || Answer::status(401, "Unauthorized", "who are you");
    let fake = Fake::new([
        Answer::events(&[], End::Clean),
        unauthorized(),
        Answer::events(&[event("ADDED", &pod("a", 6))], End::Clean),
        unauthorized(),
        unauthorized(),
    ]);
    let mut watch = fake.cluster().pods().watch_since("5").await.unwrap();
    assert_eq!(next(&mut watch).await, "added a@6");
    assert!(watch.next(TIMEOUT).await.unwrap_err().is_unauthorized());
}

#[tokio::test]
async fn repeated_malformed_events_are_an_error() {
    let bad = || Answer::Lines(vec!["{\"type\":\n".into()], End::Silent);
    let fake = Fake::new([bad(), bad(), bad(), bad()]);
    let mut watch = fake.cluster().pods().watch_since("5").await.unwrap();
    assert!(matches!(
        watch.next(TIMEOUT).await,
        Err(Error::Decode { .. })
    ));
    assert_eq!(fake.requests().len(), 4);
}

#[tokio::test]
async fn closing_ends_watches() {
    let fake = Fake::new([
        Answer::events(&[], End::Silent),
        Answer::events(&[], End::Silent),
    ]);
    let cluster = fake.cluster();
    let mut watch = cluster.pods().watch_since("5").await.unwrap();
    let mut other = cluster.pods().watch_since("5").await.unwrap();
    cluster.close();
    assert!(matches!(watch.next(None).await, Err(Error::Closed)));
    other.close();
    assert!(matches!(other.next(None).await, Err(Error::Closed)));
}

#[tokio::test]
async fn dropping_frees_the_connection() {
    let fake = Fake::new([
        Answer::events(&[], End::Silent),
        no_watch_lists(),
        Answer::json(200, &list(5, &[])),
        Answer::events(&[], End::Silent),
    ]);
    let cluster = fake
        .cluster()
        .with_timing(longshore_client::Timing::default());
    let watch = cluster.pods().watch_since("5").await.unwrap();
    fake.opened(1).await;
    drop(watch);
    fake.opened(0).await;
    let cache = cluster.pods().cache().await.unwrap();
    fake.opened(1).await;
    let changes = cache.clone().subscribe();
    drop(cache);
    fake.opened(1).await;
    drop(changes);
    fake.opened(0).await;
}

#[tokio::test]
async fn wait_returns_when_the_condition_holds_or_with_the_last_state() {
    let mut pending = pod("a", 6);
    pending["status"] = json!({"phase": "Pending", "reason": "Slow"});
    let fake = Fake::new([
        Answer::json(200, &list(5, &[])),
        Answer::events(
            &[event("ADDED", &pending), event("MODIFIED", &pod("a", 7))],
            End::Silent,
        ),
        Answer::json(200, &list(8, &[pending.clone()])),
        Answer::events(&[], End::Silent),
    ]);
    let pods = fake.cluster().pods().in_namespace("n").unwrap();
    let running = |pod: &Item<Pod>| pod.phase().is_ok_and(|phase| phase.as_str() == "Running");
    assert_eq!(
        pods.wait("a", running, TIMEOUT.unwrap())
            .await
            .unwrap()
            .version(),
        "7"
    );
    let error = pods
        .wait("a", running, Duration::from_millis(30))
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        error.is_timeout() && text.contains("last seen: phase Pending (Slow)"),
        "{text}"
    );
    assert_eq!(
        fake.requests()[0].query("fieldSelector"),
        Some("metadata.name%3Da")
    );
}

#[tokio::test]
async fn wait_for_deletion() {
    let fake = Fake::new([
        Answer::json(200, &list(5, &[pod("a", 4)])),
        Answer::events(&[event("DELETED", &pod("a", 6))], End::Silent),
    ]);
    let pods = fake.cluster().pods().in_namespace("n").unwrap();
    pods.wait_gone("a", TIMEOUT.unwrap()).await.unwrap();
}
