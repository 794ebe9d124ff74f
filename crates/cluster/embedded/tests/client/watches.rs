//! Watches under every kind of fault: afterwards a watcher has the state of a list, and it was
//! notified of each gap.

use std::time::Duration;

use longshore_client::{Error, Watch, WatchEvent, kinds::ConfigMap};
use longshore_embedded::{EmbeddedCluster, FaultRule, WatchEnd, start_server};

use crate::common::{Churn, Mirror, TIMEOUT, map, maps, soak, with_short_timeouts};

/// The watcher's state after changes for a while, with the rule applied to all watches.
async fn under(rules: Vec<FaultRule>) -> (Mirror, usize) {
    let embedded = start_server().await.unwrap();
    let cluster = embedded.cluster();
    let mut watch = maps(&with_short_timeouts(&cluster)).watch().await.unwrap();
    let rules: Vec<String> = rules
        .into_iter()
        .map(|rule| embedded.faults().add(rule).unwrap())
        .collect();
    let churn = Churn::start(&cluster);
    let mut mirror = Mirror::default();
    mirror.follow(&mut watch, soak()).await;
    let changes = churn.stop().await;
    assert!(changes > 10, "only {changes} changes");
    for rule in &rules {
        assert!(
            embedded.faults().fired(rule) > 0,
            "the fault never occurred"
        );
    }
    embedded.faults().clear();
    mirror.settle(&mut watch, &cluster).await;
    embedded.stop().await;
    (mirror, changes)
}

fn cut(end: WatchEnd) -> FaultRule {
    FaultRule::watches(end)
        .resource("configmaps")
        .after_events(3)
}

#[tokio::test]
async fn connections_that_end_lose_no_event() {
    let (mirror, _) = under(vec![cut(WatchEnd::Close)]).await;
    assert_eq!(mirror.resyncs, 0);
}

#[tokio::test]
async fn connections_that_break_lose_no_event() {
    let (mirror, _) = under(vec![cut(WatchEnd::Break)]).await;
    assert_eq!(mirror.resyncs, 0);
}

#[tokio::test]
async fn stalled_connections_are_replaced() {
    let (mirror, _) = under(vec![cut(WatchEnd::Stall)]).await;
    assert_eq!(mirror.resyncs, 0);
}

#[tokio::test]
async fn a_truncated_event_is_delivered_after_reconnecting() {
    let (mirror, _) = under(vec![cut(WatchEnd::Garble)]).await;
    assert_eq!(mirror.resyncs, 0);
}

#[tokio::test]
async fn history_that_expires_during_a_watch_causes_a_resync() {
    let (mirror, _) = under(vec![cut(WatchEnd::Expire)]).await;
    assert!(mirror.resyncs > 0);
}

#[tokio::test]
async fn repeated_errors_are_retried() {
    let busy = |code, seed| {
        FaultRule::answer(code)
            .verbs(["list", "watch"])
            .resource("configmaps")
            .share(0.4, seed)
    };
    let rules = vec![busy(429, 1), busy(503, 2), cut(WatchEnd::Break)];
    let (mirror, _) = under(rules).await;
    assert_eq!(mirror.resyncs, 0);
}

#[tokio::test]
async fn all_faults_at_once() {
    let now_and_then = |rule: FaultRule, seed| rule.share(0.3, seed);
    let rules = vec![
        now_and_then(cut(WatchEnd::Close), 1),
        now_and_then(cut(WatchEnd::Break), 2),
        now_and_then(cut(WatchEnd::Stall), 3),
        now_and_then(cut(WatchEnd::Garble), 4),
        now_and_then(cut(WatchEnd::Expire), 5),
        FaultRule::answer(429)
            .verbs(["watch", "list"])
            .resource("configmaps")
            .share(0.2, 6),
    ];
    // The faults that occur are random and depend on the available time.
    let embedded = start_server().await.unwrap();
    let cluster = embedded.cluster();
    let mut watch = maps(&with_short_timeouts(&cluster)).watch().await.unwrap();
    for rule in rules {
        embedded.faults().add(rule).unwrap();
    }
    let churn = Churn::start(&cluster);
    let mut mirror = Mirror::default();
    // `find` in the churn is a get, which no rule matches.
    mirror.follow(&mut watch, soak()).await;
    churn.stop().await;
    embedded.faults().clear();
    mirror.settle(&mut watch, &cluster).await;
    embedded.stop().await;
}

/// A watch that has received one event and is then disconnected.
async fn disconnected(embedded: &EmbeddedCluster) -> Watch<ConfigMap> {
    let cluster = embedded.cluster();
    let mut watch = maps(&with_short_timeouts(&cluster)).watch().await.unwrap();
    maps(&cluster).create(&map("first", 1)).await.unwrap();
    assert!(matches!(
        watch.next(Some(TIMEOUT)).await.unwrap(),
        WatchEvent::Added(_)
    ));
    watch
}

fn once(code: u16, times: u64) -> FaultRule {
    let rule = FaultRule::answer(code).verbs(["watch"]);
    rule.resource("configmaps").times(times)
}

fn cut_now() -> FaultRule {
    FaultRule::watches(WatchEnd::Break)
        .resource("configmaps")
        .times(1)
}

#[tokio::test]
async fn changes_during_an_outage_are_delivered_by_one_resync() {
    let embedded = start_server().await.unwrap();
    let cluster = embedded.cluster();
    let mut watch = disconnected(&embedded).await;
    embedded.faults().add(once(503, 1_000_000)).unwrap();
    embedded.faults().add(cut_now()).unwrap();
    maps(&cluster).create(&map("second", 2)).await.unwrap();
    let options = longshore_client::DeleteOptions::default();
    maps(&cluster).delete("first", &options).await.unwrap();
    // The watch waits without receiving events.
    let quiet = watch.next(Some(Duration::from_millis(100))).await;
    assert!(quiet.unwrap_err().is_timeout());
    embedded.expire_history().await;
    embedded.faults().clear();
    match watch.next(Some(TIMEOUT)).await.unwrap() {
        WatchEvent::Resync(list) => {
            let names: Vec<&str> = list.items.iter().map(|map| map.name()).collect();
            assert_eq!(names, ["second"]);
        }
        other => panic!("{other:?}"),
    }
    maps(&cluster).create(&map("third", 3)).await.unwrap();
    match watch.next(Some(TIMEOUT)).await.unwrap() {
        WatchEvent::Added(map) => assert_eq!(map.name(), "third"),
        other => panic!("{other:?}"),
    }
    embedded.stop().await;
}

#[tokio::test]
async fn rejected_credentials_are_retried_once_then_reported() {
    for times in [1, 2] {
        let embedded = start_server().await.unwrap();
        let mut watch = disconnected(&embedded).await;
        embedded.faults().add(once(401, times)).unwrap();
        embedded.faults().add(cut_now()).unwrap();
        let second = map("second", 2);
        maps(&embedded.cluster()).create(&second).await.unwrap();
        let outcome = watch.next(Some(TIMEOUT)).await;
        if times == 1 {
            assert!(matches!(outcome.unwrap(), WatchEvent::Added(_)));
        } else {
            assert!(outcome.unwrap_err().is_unauthorized());
            assert!(matches!(watch.next(None).await, Err(Error::Closed)));
        }
        embedded.stop().await;
    }
}

#[tokio::test]
async fn a_zero_timeout_does_not_wait_and_returns_available_events() {
    let embedded = start_server().await.unwrap();
    let cluster = embedded.cluster();
    let mut watch = maps(&cluster).watch().await.unwrap();
    let started = std::time::Instant::now();
    for _ in 0..1_000 {
        let nothing = watch.next(Some(Duration::ZERO)).await;
        assert!(nothing.unwrap_err().is_timeout());
    }
    assert!(started.elapsed() < Duration::from_secs(5));
    for number in 0..5 {
        let name = format!("map-{number}");
        maps(&cluster).create(&map(&name, number)).await.unwrap();
    }
    // This test has one thread, so time only passes in these calls.
    let taking = async {
        let mut taken = 0;
        while taken < 5 {
            match watch.next(Some(Duration::ZERO)).await {
                Ok(_) => taken += 1,
                Err(error) => assert!(error.is_timeout(), "{error}"),
            }
        }
    };
    tokio::time::timeout(TIMEOUT, taking).await.unwrap();
    embedded.stop().await;
}
