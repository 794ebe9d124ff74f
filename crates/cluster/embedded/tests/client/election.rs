//! Leader election on a server with fault injection.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use longshore_client::{Cluster, ElectionOptions, Error, Leadership, Patch};
use longshore_embedded::{EmbeddedCluster, FaultRule, start_server};
use serde_json::json;
use tokio::time::{Instant, timeout};

/// The tests fail after this time.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Longer than a slow machine delays the leader that gives up.
const LONG_LEASE: Duration = Duration::from_secs(5);

fn options(identity: &str) -> ElectionOptions {
    ElectionOptions {
        lease_duration: Duration::from_secs(1),
        renew_deadline: Duration::from_millis(700),
        retry_interval: Duration::from_millis(50),
        ..ElectionOptions::new(identity)
    }
}

async fn lead(cluster: &Cluster, identity: &str) -> Leadership {
    let leading = cluster.lead("default", "lead", options(identity));
    timeout(TIMEOUT, leading).await.unwrap().unwrap()
}

async fn holder(cluster: &Cluster) -> String {
    let leases = cluster.leases().in_namespace("default").unwrap();
    let lease = leases.fetch("lead").await.unwrap();
    let holder = lease.field::<String>(&["spec", "holderIdentity"]).unwrap();
    holder.unwrap_or_default()
}

#[tokio::test]
async fn one_candidate_leads_at_a_time() {
    let embedded = start_server().await.unwrap();
    let cluster = embedded.cluster();
    let (leaders, turns) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let candidate = |number: usize| {
        let (cluster, leaders, turns) = (cluster.clone(), Arc::clone(&leaders), Arc::clone(&turns));
        tokio::spawn(async move {
            let leadership = lead(&cluster, &format!("process-{number}")).await;
            assert_eq!(leaders.fetch_add(1, Ordering::SeqCst), 0, "two lead");
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(leadership.is_leading());
            turns.fetch_add(1, Ordering::SeqCst);
            leaders.fetch_sub(1, Ordering::SeqCst);
            leadership.resign().await.unwrap();
        })
    };
    for candidate in [0, 1, 2].map(candidate) {
        candidate.await.unwrap();
    }
    assert_eq!(turns.load(Ordering::SeqCst), 3);
    assert_eq!(holder(&cluster).await, "");
    embedded.stop().await;
}

#[tokio::test]
async fn a_leadership_is_kept_for_longer_than_the_lease_and_passes_on_when_it_is_dropped() {
    let embedded = start_server().await.unwrap();
    let cluster = embedded.cluster();
    let first = lead(&cluster, "first").await;
    let other = cluster.clone();
    let second = tokio::spawn(async move { lead(&other, "second").await });
    assert!(timeout(Duration::from_secs(2), first.lost()).await.is_err());
    assert!(first.is_leading() && !second.is_finished());
    drop(first);
    let second = second.await.unwrap();
    assert!(second.is_leading());
    assert_eq!(holder(&cluster).await, "second");
    embedded.stop().await;
}

#[tokio::test]
async fn a_leadership_that_is_taken_away_is_lost() {
    let embedded = start_server().await.unwrap();
    let cluster = embedded.cluster();
    let leadership = lead(&cluster, "first").await;
    let leases = cluster.leases().in_namespace("default").unwrap();
    let spec = json!({"spec": {"holderIdentity": "thief"}});
    leases.patch("lead", &Patch::merge(spec)).await.unwrap();
    timeout(TIMEOUT, leadership.lost()).await.unwrap();
    assert!(!leadership.is_leading());
    // The leader does not release the Lease of another process.
    leadership.resign().await.unwrap();
    assert_eq!(holder(&cluster).await, "thief");
    embedded.stop().await;
}

async fn lost_with(rule: FaultRule) -> (EmbeddedCluster, Duration) {
    let embedded = start_server().await.unwrap();
    let options = ElectionOptions {
        lease_duration: LONG_LEASE,
        ..options("first")
    };
    let leading = embedded.cluster().lead("default", "lead", options).await;
    embedded.faults().add(rule).unwrap();
    let begin = Instant::now();
    timeout(TIMEOUT, leading.unwrap().lost()).await.unwrap();
    (embedded, begin.elapsed())
}

#[tokio::test]
async fn a_leader_that_cannot_renew_gives_up_before_its_lease_expires() {
    let (embedded, took) = lost_with(FaultRule::answer(500).resource("leases")).await;
    assert!(took < LONG_LEASE, "{took:?}");
    embedded.stop().await;
    // A server that does not respond.
    let slow = FaultRule::delay(Duration::from_secs(60)).resource("leases");
    let (embedded, took) = lost_with(slow).await;
    assert!(took < LONG_LEASE, "{took:?}");
    embedded.faults().clear();
    embedded.stop().await;
}

#[tokio::test]
async fn a_candidate_survives_errors_that_pass_and_reports_those_that_remain() {
    let embedded = start_server().await.unwrap();
    let cluster = embedded.cluster();
    let rule = FaultRule::answer(503).resource("leases").times(3);
    embedded.faults().add(rule).unwrap();
    lead(&cluster, "first").await.resign().await.unwrap();
    let error = cluster
        .lead("absent", "lead", options("first"))
        .await
        .unwrap_err();
    assert!(error.is_not_found(), "{error}");
    let error = cluster
        .lead("default", "lead", options(""))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
    embedded.stop().await;
}

#[tokio::test]
async fn a_request_without_a_response_does_not_hold_up_a_candidate() {
    let embedded = start_server().await.unwrap();
    let cluster = embedded.cluster();
    let lost = FaultRule::delay(Duration::from_secs(600))
        .resource("leases")
        .verbs(["create"])
        .times(1);
    embedded.faults().add(lost).unwrap();
    let leadership = lead(&cluster, "first").await;
    assert!(leadership.is_leading());
    leadership.resign().await.unwrap();
    embedded.faults().clear();
    embedded.stop().await;
}
