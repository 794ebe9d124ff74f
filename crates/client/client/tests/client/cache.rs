//! Caches, on a fake API server.

use std::time::Duration;

use crate::fake::{Answer, End, Fake, event, list, no_watch_lists, pod, status};
use longshore_client::{Cache, Change, Item, kinds::Pod};
use serde_json::{Value, json};

const TIMEOUT: Option<Duration> = Some(Duration::from_secs(20));

fn describe(change: &Change<Pod>) -> String {
    match change {
        Change::Upsert(item) => format!("+{}@{}", item.name(), item.version()),
        Change::Gone(item) => format!("-{}@{}", item.name(), item.version()),
    }
}

#[tokio::test]
async fn a_cache_reports_only_differences_after_a_resync() {
    let mut reborn = pod("c", 30);
    reborn["metadata"]["uid"] = "another".into();
    let mut managed = pod("a", 1);
    managed["metadata"]["managedFields"] = json!([{"manager": "m"}]);
    let fake = Fake::new([
        no_watch_lists(),
        Answer::json(200, &list(5, &[managed, pod("b", 2), pod("c", 3)])),
        Answer::events(
            &[event("ERROR", &status(410, "Expired", "too old"))],
            End::Clean,
        ),
        Answer::json(200, &list(31, &[pod("a", 1), reborn, pod("d", 29)])),
        Answer::events(&[event("DELETED", &pod("d", 32))], End::Silent),
    ]);
    let cache = fake
        .cluster()
        .pods()
        .in_namespace("n")
        .unwrap()
        .cache()
        .await
        .unwrap();
    let mut changes = cache.subscribe();
    let mut seen = Vec::new();
    while seen.last().map(String::as_str) != Some("-d@32") {
        let change = tokio::time::timeout(TIMEOUT.unwrap(), changes.next())
            .await
            .unwrap()
            .unwrap();
        seen.push(describe(&change));
    }
    // Changes that arrive together may be merged into the last state.
    seen.retain(|change| change != "+d@29");
    assert_eq!(
        seen,
        ["+a@1", "+b@2", "+c@3", "-b@2", "-c@3", "+c@30", "-d@32"]
    );
    let a = cache.get(Some("n"), "a").unwrap();
    assert!(a.raw().unwrap()["metadata"].get("managedFields").is_none());
    let names: Vec<String> = cache
        .items()
        .iter()
        .map(|item| item.name().to_owned())
        .collect();
    assert_eq!(names, ["a", "c"]);
    assert!(cache.get(None, "a").is_none());
}

#[tokio::test]
async fn a_cache_survives_a_lost_permission_and_ends_on_close() {
    let fake = Fake::new([
        no_watch_lists(),
        Answer::json(200, &list(5, &[])),
        Answer::status(403, "Forbidden", "not now"),
        Answer::json(200, &list(8, &[pod("a", 7)])),
        Answer::events(&[], End::Silent),
    ]);
    let cluster = fake.cluster();
    let mut changes = cluster.pods().cache().await.unwrap().subscribe();
    let change = tokio::time::timeout(TIMEOUT.unwrap(), changes.next())
        .await
        .unwrap();
    assert_eq!(describe(&change.unwrap()), "+a@7");
    cluster.close();
    assert!(
        tokio::time::timeout(TIMEOUT.unwrap(), changes.next())
            .await
            .unwrap()
            .is_none()
    );
}

fn end(version: u64) -> Value {
    let mut end = crate::fake::bookmark(version);
    end["object"]["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    end
}

fn labelled(namespace: &str, name: &str, version: u64, labels: &Value) -> Value {
    let mut pod = pod(name, version);
    pod["metadata"]["namespace"] = namespace.into();
    pod["metadata"]["labels"] = labels.clone();
    pod
}

fn names(items: &[Item<Pod>]) -> Vec<String> {
    let name = |item: &Item<Pod>| format!("{}/{}", item.namespace().unwrap(), item.name());
    items.iter().map(name).collect()
}

async fn until(cache: &Cache<Pod>, mut holds: impl FnMut(&Cache<Pod>) -> bool) {
    let holding = async {
        while !holds(cache) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(TIMEOUT.unwrap(), holding)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_watch_list_fills_the_cache_and_continues_as_its_watch() {
    let web = json!({"app": "web", "tier": "a"});
    let fake = Fake::new([Answer::events(
        &[
            event("ADDED", &labelled("n", "one", 1, &web)),
            event("ADDED", &labelled("n-1", "two", 2, &web)),
            event("ADDED", &labelled("n", "three", 3, &json!({"app": "db"}))),
            end(9),
            event("MODIFIED", &labelled("n", "one", 10, &json!({"app": "db"}))),
            event(
                "DELETED",
                &labelled("n", "three", 11, &json!({"app": "db"})),
            ),
        ],
        End::Silent,
    )]);
    let calm = fake
        .cluster()
        .with_timing(longshore_client::Timing::default());
    let cache = calm.pods().cache().await.unwrap();
    let first = cache.snapshot();
    until(&cache, |cache| cache.len() == 2).await;
    assert_eq!(names(&cache.items()), ["n/one", "n-1/two"]);
    assert_eq!(names(&cache.by_namespace("n")), ["n/one"]);
    assert_eq!(names(&cache.by_label("app", "web")), ["n-1/two"]);
    assert_eq!(names(&cache.by_label("app", "db")), ["n/one"]);
    let selector = "app in (web,db),!tier".parse().unwrap();
    assert_eq!(names(&cache.matching(&selector)), ["n/one"]);
    // There is one connection, and an earlier snapshot does not change.
    let seen = fake.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].query("sendInitialEvents"), Some("true"));
    assert_eq!(seen[0].query("resourceVersionMatch"), Some("NotOlderThan"));
    if first.len() == 3 {
        assert_eq!(names(&first.by_label("app", "web")), ["n/one", "n-1/two"]);
    }
}

#[tokio::test]
async fn watch_lists_are_tried_once_where_they_are_rejected_or_unknown() {
    let old = |events: &[Value], end| Answer::events(events, end);
    let added = event("ADDED", &pod("a", 1));
    for first in [
        no_watch_lists(),
        Answer::status(400, "BadRequest", "unknown parameter"),
        // A server that does not know the parameter sends the current objects, then
        // changes, bookmarks, or nothing.
        old(
            &[added.clone(), event("MODIFIED", &pod("a", 2))],
            End::Silent,
        ),
        old(&[added.clone(), crate::fake::bookmark(2)], End::Silent),
        old(&[added], End::Silent),
    ] {
        let list = || Answer::json(200, &list(5, &[pod("b", 4)]));
        let fake = Fake::new([first, list(), Answer::events(&[], End::Silent)]);
        let cluster = fake.cluster();
        let cache = cluster.pods().cache().await.unwrap();
        assert_eq!(names(&cache.items()), ["n/b"]);
        until(&cache, |_| fake.requests().len() == 3).await;
        drop(cache);
        fake.push(list());
        fake.push(list());
        cluster.pods().cache().await.unwrap();
        let again = &fake.requests()[3..];
        let tried = again
            .iter()
            .any(|seen| seen.query("sendInitialEvents").is_some());
        assert!(!tried, "{again:?}");
    }
}

#[tokio::test]
async fn a_broken_watch_list_is_retried() {
    let added = event("ADDED", &pod("a", 1));
    for broken in [
        Answer::events(std::slice::from_ref(&added), End::Broken),
        Answer::events(std::slice::from_ref(&added), End::Clean),
        Answer::Lines(vec!["{\"type\":\n".into()], End::Silent),
        Answer::events(
            &[event("ERROR", &status(410, "Expired", "too old"))],
            End::Clean,
        ),
    ] {
        let fake = Fake::new([
            broken,
            Answer::json(200, &list(5, &[pod("b", 4)])),
            Answer::events(
                &[event("ERROR", &status(410, "Expired", "old"))],
                End::Clean,
            ),
            Answer::events(&[event("ADDED", &pod("c", 8)), end(9)], End::Silent),
        ]);
        let cache = fake.cluster().pods().cache().await.unwrap();
        until(&cache, |cache| names(&cache.items()) == ["n/c"]).await;
    }
}

#[tokio::test]
async fn objects_without_a_name_cannot_be_cached() {
    let mut wrong = pod("wrong", 2);
    wrong["metadata"]["name"] = 7.into();
    let fake = Fake::new([
        no_watch_lists(),
        Answer::json(200, &list(5, &[pod("a", 1), wrong.clone()])),
        Answer::events(&[event("ADDED", &wrong), end(9)], End::Silent),
    ]);
    let cluster = fake.cluster();
    let error = cluster.pods().cache().await.unwrap_err().to_string();
    assert!(
        error.starts_with("items[1] of the response to GET"),
        "{error}"
    );
}

#[tokio::test]
async fn pages_of_a_snapshot_that_expires_are_read_again_at_once() {
    let mut first = list(5, &[pod("a", 1)]);
    first["metadata"]["continue"] = "x".into();
    let mut expired = status(410, "Expired", "too old");
    expired["metadata"] = json!({"continue": "newer"});
    let fake = Fake::new([
        no_watch_lists(),
        Answer::json(200, &first),
        Answer::json(410, &expired),
        Answer::json(200, &list(8, &[pod("b", 7)])),
        Answer::events(&[], End::Silent),
    ]);
    let cache = fake.cluster().pods().cache().await.unwrap();
    assert_eq!(names(&cache.items()), ["n/b"]);
    fake.opened(1).await;
    let seen = fake.requests();
    assert_eq!(
        (seen[3].query("limit"), seen[3].query("continue")),
        (None, None)
    );
    assert_eq!(seen[4].query("resourceVersion"), Some("8"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_holds_a_snapshot_blocks_nothing() {
    let mut events: Vec<Value> = vec![event("ADDED", &pod("a", 1)), end(2)];
    events.extend((3..500).map(|version| event("MODIFIED", &pod("a", version))));
    let fake = Fake::new([Answer::events(&events, End::Silent)]);
    let calm = fake
        .cluster()
        .with_timing(longshore_client::Timing::default());
    let cache = calm.pods().cache().await.unwrap();
    let snapshot = cache.snapshot();
    let mut items = snapshot.iter();
    let at_first = items.next().unwrap();
    until(&cache, |cache| {
        cache.get(Some("n"), "a").unwrap().version() == "499"
    })
    .await;
    assert_eq!(snapshot.get(Some("n"), "a").unwrap(), at_first);
    assert!(items.next().is_none());
}
