//! Tests of the decisions.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use jiff::ToSpan;
use proptest::prelude::*;

use super::{
    claim::claim,
    counts::status,
    flavor::{REPLICA_SET, REPLICATION_CONTROLLER},
    order::surplus,
    plan::{Scale, batches, scale},
    store::Store,
    testing::{now, pod, set},
};
use crate::{
    key::Key,
    pod_facts::{Phase, PodFacts, next_available},
};

fn names(pods: &[&PodFacts]) -> Vec<String> {
    pods.iter().map(|pod| pod.key.name.clone()).collect()
}

fn bare(name: &str) -> PodFacts {
    PodFacts {
        owner: None,
        ..pod(name)
    }
}

#[test]
fn matching_pods_are_adopted_and_others_released() {
    let mut other = pod("other");
    other.labels.clear();
    let deleting = |pod: PodFacts| PodFacts {
        deleting: true,
        ..pod
    };
    let mut foreign = pod("foreign");
    foreign.owner.as_mut().unwrap().uid = "s2".into();
    let pods = [
        pod("own"),
        bare("orphan"),
        other,
        deleting(pod("going")),
        deleting(bare("late")),
        foreign,
        PodFacts {
            phase: Phase::Succeeded,
            ..pod("ended")
        },
    ];
    let claims = claim(&set(1), &pods);
    assert_eq!(names(&claims.owned), ["own"]);
    assert_eq!(names(&claims.adopt), ["orphan"]);
    assert_eq!(names(&claims.release), ["other"]);
    assert_eq!(claims.terminating, 1);

    let mut gone = set(1);
    gone.deleting = true;
    let claims = claim(&gone, &pods);
    assert_eq!(names(&claims.owned), ["own"]);
    assert!(claims.adopt.is_empty() && claims.release.is_empty());
}

#[test]
fn a_set_in_deletion_neither_creates_nor_deletes() {
    let (one, mut gone) = (pod("a"), set(3));
    assert_eq!(scale(&gone, &[&one], &[], now()), Scale::Create(2));
    gone.deleting = true;
    assert_eq!(scale(&gone, &[&one], &[], now()), Scale::Keep);
    gone.replicas = 0;
    assert_eq!(scale(&gone, &[&one], &[], now()), Scale::Keep);
}

#[test]
fn batch_sizes_double() {
    assert_eq!(batches(10).collect::<Vec<_>>(), [1, 2, 4, 3]);
    assert_eq!(batches(0).count(), 0);
    assert_eq!(scale(&set(900), &[], &[], now()), Scale::Create(500));
}

#[test]
fn surplus_pods_are_deleted_in_the_order_of_kubernetes() {
    let ago = |hours: i64| Some(now() - hours.hours());
    let old = PodFacts {
        ready: Some(ago(100)),
        created: ago(100),
        ..pod("old")
    };
    let with = |name: &str, change: fn(&mut PodFacts)| {
        let mut pod = PodFacts {
            key: Key::new("a", name),
            uid: name.into(),
            ..old.clone()
        };
        change(&mut pod);
        pod
    };
    let ordered = [
        with("unassigned", |pod| pod.node.clear()),
        with("pending", |pod| pod.phase = Phase::Pending),
        with("unknown", |pod| pod.phase = Phase::Unknown),
        with("unready", |pod| pod.ready = None),
        with("cheap", |pod| pod.cost = -1),
        with("doubled", |pod| pod.node = "m".into()),
        with("new", |pod| pod.ready = Some(Some(now() - 1.hour()))),
        with("restarted", |pod| pod.restarts = (2, 0)),
        with("sidecar", |pod| pod.restarts = (0, 1)),
        with("young", |pod| pod.created = Some(now() - 1.hour())),
        old.clone(),
        with("dear", |pod| pod.cost = 1),
    ];
    let doubled = ["x", "y", "z"].map(|name| with(name, |pod| pod.node = "m".into()));
    let related: Vec<&PodFacts> = doubled.iter().collect();
    let mut shuffled: Vec<&PodFacts> = ordered.iter().collect();
    shuffled.rotate_left(5);
    shuffled.reverse();
    for count in 0..=ordered.len() {
        let expected: Vec<&PodFacts> = ordered.iter().take(count).collect();
        let found = surplus(&shuffled, &related, count, now());
        assert_eq!(names(&found), names(&expected));
    }
}

#[test]
fn the_status_has_counts_and_conditions() {
    let mut web = set(3);
    web.min_ready_seconds = 10;
    let mut labelled = pod("a");
    labelled.labels.insert("v".into(), "1".into());
    let early = PodFacts {
        ready: Some(Some(now() - 10.seconds())),
        ..pod("b")
    };
    let unready = PodFacts {
        ready: None,
        ..pod("c")
    };
    let active = [&labelled, &early, &unready];
    let found = status(&REPLICA_SET, &web, &active, 2, None, now());
    assert_eq!(
        (
            found.replicas,
            found.fully_labeled_replicas,
            found.ready_replicas
        ),
        (3, 1, 2)
    );
    assert_eq!(
        (found.available_replicas, found.terminating_replicas),
        (1, Some(2))
    );
    assert_eq!(
        next_available(active.iter().copied(), web.min_ready_seconds, now()),
        Some(Duration::from_secs(10))
    );
    let found = status(&REPLICATION_CONTROLLER, &web, &active, 2, None, now());
    assert_eq!(found.terminating_replicas, None);

    let failed = status(&REPLICA_SET, &web, &active[..1], 0, Some("no room"), now());
    let condition = &failed.conditions[0];
    assert_eq!(
        (
            condition.kind.as_str(),
            condition.reason.as_str(),
            condition.message.as_str()
        ),
        ("ReplicaFailure", "FailedCreate", "no room")
    );
    web.status = failed;
    web.replicas = 0;
    let again = status(&REPLICA_SET, &web, &active, 0, Some("other"), now());
    assert_eq!(again.conditions, web.status.conditions);
    let well = status(&REPLICA_SET, &web, &active, 0, None, now());
    assert!(well.conditions.is_empty());
}

#[test]
fn a_pod_deleted_before_the_create_response_is_not_added() {
    let mut store = Store::default();
    store.put(set(1));
    let key = Key::new("a", "p");
    store.begin_creating("s1");
    store.put_pod(pod("p"));
    store.remove_pod(&key, "p");
    store.created("s1", pod("p"));
    store.end_creating("s1");
    assert!(
        store
            .snapshot(&Key::new("a", "web"))
            .unwrap()
            .pods
            .is_empty()
    );

    // A late message of the watch about an earlier state does not undo an accepted deletion.
    store.put_pod(pod("q"));
    store.mark_deleting(&Key::new("a", "q"), "q");
    store.put_pod(PodFacts {
        version: Some(2),
        ..pod("q")
    });
    assert!(store.snapshot(&Key::new("a", "web")).unwrap().pods[0].deleting);
}

proptest! {
    /// Messages can be delayed, duplicated or reordered. After the last state of each pod is known,
    /// the store contains exactly these states.
    #[test]
    fn any_order_of_messages_results_in_the_same_state(
        order in Just((0_u64..24).collect::<Vec<_>>()).prop_shuffle()
    ) {
        let mut store = Store::default();
        store.put(set(4));
        for step in order {
            let (name, version) = (format!("p{}", step % 4), step / 4 + 1);
            store.put_pod(PodFacts {
                version: Some(version),
                owner: pod("").owner.filter(|_| version % 2 == 0),
                ..pod(&name)
            });
        }
        let snapshot = store.snapshot(&Key::new("a", "web")).unwrap();
        let claims = claim(&snapshot.set, &snapshot.pods);
        prop_assert_eq!(names(&claims.owned), ["p0", "p1", "p2", "p3"]);
        prop_assert_eq!(scale(&snapshot.set, &claims.owned, &[], now()), Scale::Keep);
    }
}
