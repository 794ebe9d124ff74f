//! Deletion: grace periods, finalizers, propagation.

use std::sync::Arc;

use crate::support::{Api, ManualClock, api, config, job, kind, names, options, pod, status};
use longshore_engine::{
    DeleteCollection, DeleteOptions, Deleted, Engine, Error, ListRequest, Options, Propagation,
    Storage, WatchEvent, WatchRequest, WatchStart,
};
use serde_json::{Value, json};

fn grace(seconds: i64) -> DeleteOptions {
    DeleteOptions {
        grace_seconds: Some(seconds),
        ..DeleteOptions::default()
    }
}

fn policy(propagation: Propagation) -> DeleteOptions {
    DeleteOptions {
        propagation: Some(propagation),
        ..DeleteOptions::default()
    }
}

async fn running(api: &Api, name: &str) {
    api.create("pods", pod(name)).await.unwrap();
    api.bind(name, "here").await.unwrap();
}

fn pending(deleted: Deleted) -> Value {
    match deleted {
        Deleted::Pending(object) => object.value(),
        Deleted::Gone(object) => panic!("{} does not exist", object.name()),
    }
}

fn is_removed(deleted: &Deleted) -> bool {
    matches!(deleted, Deleted::Gone(_))
}

#[tokio::test]
async fn a_scheduled_pod_keeps_its_grace_period_which_can_only_shrink() {
    let api = api();
    running(&api, "a").await;
    let value = pending(api.delete("pods", "a").await.unwrap());
    assert_eq!(value["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(
        value["metadata"]["deletionTimestamp"],
        "2026-01-02T03:04:35Z"
    );
    assert_eq!(value["metadata"]["generation"], 2);
    let version = value["metadata"]["resourceVersion"].clone();
    for options in [grace(60), DeleteOptions::default()] {
        let again = pending(api.delete_with("pods", "a", options).await.unwrap());
        assert_eq!(again["metadata"]["resourceVersion"], version);
    }
    let value = pending(api.delete_with("pods", "a", grace(5)).await.unwrap());
    assert_eq!(
        value["metadata"]["deletionTimestamp"],
        "2026-01-02T03:04:10Z"
    );
    assert_eq!(value["metadata"]["generation"], 2);
    assert!(is_removed(
        &api.delete_with("pods", "a", grace(0)).await.unwrap()
    ));
    assert_eq!(
        status(api.delete("pods", "a").await).2,
        r#"pods "a" not found"#
    );
}

#[tokio::test]
async fn a_pod_that_is_not_running_has_no_grace_period() {
    let api = api();
    api.create("pods", pod("waiting")).await.unwrap();
    assert!(is_removed(&api.delete("pods", "waiting").await.unwrap()));
    running(&api, "finished").await;
    api.merge_status(
        "pods",
        "finished",
        json!({"status": {"phase": "Succeeded"}}),
    )
    .await
    .unwrap();
    assert!(is_removed(&api.delete("pods", "finished").await.unwrap()));
}

#[tokio::test]
async fn an_object_is_removed_with_its_last_finalizer() {
    let api = api();
    let mut object = config("a");
    object["metadata"]["finalizers"] = json!(["a.b/c"]);
    api.create("configmaps", object).await.unwrap();
    let value = pending(api.delete("configmaps", "a").await.unwrap());
    assert_eq!(
        value["metadata"]["deletionTimestamp"],
        "2026-01-02T03:04:05Z"
    );
    let more = json!({"metadata": {"finalizers": ["a.b/c", "d.e/f"]}});
    let (code, _, message) = status(api.merge("configmaps", "a", more).await);
    assert_eq!(code, 422);
    assert!(message.contains("no new finalizers can be added if the object is being deleted"));
    let last = api
        .merge("configmaps", "a", json!({"metadata": {"finalizers": null}}))
        .await
        .unwrap();
    assert_eq!(last.name(), "a");
    assert!(matches!(
        api.get("configmaps", "a"),
        Err(Error::NotFound(_))
    ));
}

#[tokio::test]
async fn a_pod_stays_during_its_grace_period_without_finalizers() {
    let api = api();
    running(&api, "a").await;
    api.merge("pods", "a", json!({"metadata": {"finalizers": ["a.b/c"]}}))
        .await
        .unwrap();
    pending(api.delete("pods", "a").await.unwrap());
    api.merge("pods", "a", json!({"metadata": {"finalizers": null}}))
        .await
        .unwrap();
    assert!(api.get("pods", "a").is_ok());
    assert!(is_removed(
        &api.delete_with("pods", "a", grace(0)).await.unwrap()
    ));
}

#[tokio::test]
async fn grace_period_zero_waits_for_finalizers() {
    let api = api();
    running(&api, "a").await;
    api.merge("pods", "a", json!({"metadata": {"finalizers": ["a.b/c"]}}))
        .await
        .unwrap();
    let value = pending(api.delete_with("pods", "a", grace(0)).await.unwrap());
    assert_eq!(value["metadata"]["deletionGracePeriodSeconds"], 0);
    api.merge("pods", "a", json!({"metadata": {"finalizers": null}}))
        .await
        .unwrap();
    assert!(api.get("pods", "a").is_err());
}

#[tokio::test]
async fn preconditions_must_hold() {
    let api = api();
    let object = api.create("configmaps", config("a")).await.unwrap();
    let uid = DeleteOptions {
        uid: Some("other".into()),
        ..DeleteOptions::default()
    };
    assert_eq!(status(api.delete_with("configmaps", "a", uid).await).0, 409);
    let version = DeleteOptions {
        version: Some("1".into()),
        ..DeleteOptions::default()
    };
    assert_eq!(
        status(api.delete_with("configmaps", "a", version).await).0,
        409
    );
    let right = DeleteOptions {
        uid: Some(object.uid().into()),
        version: Some(object.revision().to_string()),
        ..DeleteOptions::default()
    };
    assert!(is_removed(
        &api.delete_with("configmaps", "a", right).await.unwrap()
    ));
}

#[tokio::test]
async fn propagation_becomes_a_finalizer() {
    let api = api();
    for (propagation, finalizers) in [
        (Propagation::Orphan, json!(["orphan"])),
        (Propagation::Foreground, json!(["foregroundDeletion"])),
    ] {
        let name = propagation.as_str().to_lowercase();
        api.create("configmaps", config(&name)).await.unwrap();
        let value = pending(
            api.delete_with("configmaps", &name, policy(propagation))
                .await
                .unwrap(),
        );
        assert_eq!(value["metadata"]["finalizers"], finalizers);
    }
    let both = DeleteOptions {
        orphan_dependents: Some(true),
        ..policy(Propagation::Orphan)
    };
    assert_eq!(
        status(api.delete_with("configmaps", "orphan", both).await).0,
        422
    );
    let background = policy(Propagation::Background);
    assert!(is_removed(
        &api.delete_with("configmaps", "orphan", background)
            .await
            .unwrap()
    ));
}

#[tokio::test]
async fn jobs_orphan_their_pods_by_default() {
    let api = api();
    for name in ["a", "b"] {
        api.create("jobs", job(name)).await.unwrap();
    }
    let value = pending(api.delete("jobs", "a").await.unwrap());
    assert_eq!(value["metadata"]["finalizers"], json!(["orphan"]));
    let background = policy(Propagation::Background);
    assert!(is_removed(
        &api.delete_with("jobs", "b", background).await.unwrap()
    ));
}

#[tokio::test]
async fn a_dry_delete_deletes_nothing() {
    let api = api();
    api.create("configmaps", config("a")).await.unwrap();
    let dry = DeleteOptions {
        dry_run: true,
        ..DeleteOptions::default()
    };
    assert!(is_removed(
        &api.delete_with("configmaps", "a", dry).await.unwrap()
    ));
    assert!(api.get("configmaps", "a").is_ok());
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let api = api();
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let mut object = config(name);
        object["metadata"]["labels"] = json!({"l": label});
        api.create("configmaps", object).await.unwrap();
    }
    let request = DeleteCollection {
        list: ListRequest {
            namespace: Some("default".into()),
            labels: "l=x".parse().unwrap(),
            ..ListRequest::of(kind("configmaps"))
        },
        options: DeleteOptions::default(),
    };
    assert_eq!(
        api.0.delete_collection(request).await.unwrap().items.len(),
        2
    );
    assert_eq!(names(&api.list("configmaps")), ["b"]);
}

/// An endless grace period is stored as it is, and can be shortened.
#[tokio::test]
async fn a_pod_with_an_endless_grace_period_can_be_force_deleted() {
    for grace in [i64::MAX, i64::MAX - 1, 400_000_000_000, 1 << 40] {
        let api = api();
        let mut endless = pod("a");
        endless["spec"]["terminationGracePeriodSeconds"] = grace.into();
        api.create("pods", endless).await.unwrap();
        api.bind("a", "n").await.unwrap();
        let value = pending(api.delete("pods", "a").await.unwrap());
        assert_eq!(value["metadata"]["deletionGracePeriodSeconds"], grace);
        let due = value["metadata"]["deletionTimestamp"].as_str().unwrap();
        assert!(due.starts_with("9999-"), "{due}");
        let seconds = |seconds| DeleteOptions {
            grace_seconds: Some(seconds),
            ..DeleteOptions::default()
        };
        let value = pending(api.delete_with("pods", "a", seconds(5)).await.unwrap());
        assert_eq!(value["metadata"]["deletionGracePeriodSeconds"], 5);
        assert!(is_removed(
            &api.delete_with("pods", "a", seconds(0)).await.unwrap()
        ));
        for odd in [i64::MIN, -1, i64::MAX] {
            api.create("pods", pod("b")).await.unwrap();
            api.bind("b", "n").await.unwrap();
            let _ = api.delete_with("pods", "b", seconds(odd)).await.unwrap();
            assert!(is_removed(
                &api.delete_with("pods", "b", seconds(0)).await.unwrap()
            ));
        }
    }
}

/// The end of a shortened grace period is never in the past, and a negative grace period is a
/// second. The expectations are from the code of Kubernetes 1.37.
#[tokio::test]
async fn a_grace_period_cannot_end_in_the_past() {
    for (after, seconds, expected) in [
        (2, 5, Some(("2026-01-02T03:04:10Z", 5))),
        (10, 5, Some(("2026-01-02T03:04:15Z", 1))),
        (10, 20, Some(("2026-01-02T03:04:25Z", 20))),
        (0, -7, Some(("2026-01-02T03:04:06Z", 1))),
        (10, -1, Some(("2026-01-02T03:04:15Z", 1))),
        (10, 0, None),
        (10, 30, Some(("2026-01-02T03:04:35Z", 30))),
    ] {
        let clock = Arc::new(ManualClock::default());
        let options = Options {
            clock: clock.clone(),
            ..options(Storage::Memory)
        };
        let api = Api(Engine::open(options).unwrap());
        running(&api, "a").await;
        pending(api.delete("pods", "a").await.unwrap());
        clock.advance(jiff::SignedDuration::from_secs(after));
        let deleted = api.delete_with("pods", "a", grace(seconds)).await.unwrap();
        let Some((end, left)) = expected else {
            assert!(is_removed(&deleted));
            continue;
        };
        let metadata = &pending(deleted)["metadata"];
        let found = (
            &metadata["deletionTimestamp"],
            &metadata["deletionGracePeriodSeconds"],
        );
        assert_eq!(found, (&json!(end), &json!(left)), "{after} {seconds}");
    }
}

/// A watch first sees the end of the grace period, and then the deletion, because Kubernetes
/// updates the pod and then deletes it. The deletion of a pod without a running grace period is one
/// event.
#[tokio::test]
async fn a_watch_sees_how_a_pod_is_deleted() {
    for (finalizers, first, second, expected) in [
        (
            json!(null),
            None,
            Some(0),
            vec![("MODIFIED", json!(0)), ("DELETED", json!(0))],
        ),
        (
            json!(null),
            Some(9),
            Some(0),
            vec![
                ("MODIFIED", json!(9)),
                ("MODIFIED", json!(0)),
                ("DELETED", json!(0)),
            ],
        ),
        (
            json!(["a.b/c"]),
            None,
            Some(0),
            vec![("MODIFIED", json!(0))],
        ),
        // The second deletion does not change the pod.
        (
            json!(["a.b/c"]),
            Some(0),
            Some(0),
            vec![("MODIFIED", json!(0))],
        ),
    ] {
        let api = api();
        running(&api, "a").await;
        api.merge("pods", "a", json!({"metadata": {"finalizers": finalizers}}))
            .await
            .unwrap();
        let begin = WatchStart::After(api.0.revision());
        for seconds in [first, second].into_iter().flatten() {
            api.delete_with("pods", "a", grace(seconds)).await.unwrap();
        }
        let mut watch = api.0.watch(&WatchRequest::of(kind("pods"), begin)).unwrap();
        let mut seen = Vec::new();
        while let Some(event) = watch.try_next().unwrap() {
            let (word, object) = match event {
                WatchEvent::Modified(object) => ("MODIFIED", object.value()),
                WatchEvent::Deleted(object) => ("DELETED", object.value()),
                other => panic!("{other:?}"),
            };
            let left = object["metadata"]["deletionGracePeriodSeconds"].clone();
            seen.push((word, left));
        }
        assert_eq!(seen, expected);
    }
}

/// The options of a deletion do not change a pod whose grace period is running.
#[tokio::test]
async fn a_pending_deletion_keeps_the_finalizers() {
    let api = api();
    running(&api, "a").await;
    let before = pending(api.delete("pods", "a").await.unwrap());
    for propagation in [Propagation::Foreground, Propagation::Orphan] {
        let again = api.delete_with("pods", "a", policy(propagation)).await;
        assert_eq!(pending(again.unwrap()), before);
    }
}
