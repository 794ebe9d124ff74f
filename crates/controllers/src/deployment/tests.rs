//! Tests of the plan, in a world without an API server or a clock.
#![allow(clippy::unwrap_used)]

use jiff::ToSpan;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    hash::{HASH_LABEL, hash, is_same},
    plan::Plan,
    testing::{World, template},
};

fn rolling(replicas: i64, surge: i64, unavailable: i64) -> Value {
    json!({
        "replicas": replicas, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10,
        "strategy": {"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
    })
}

fn pair(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

#[test]
fn a_rollout_a_rollback_and_its_revisions() {
    let mut world = World::new(rolling(3, 1, 0));
    world.settle();
    assert_eq!(world.sizes(), [("v1".to_owned(), 3)]);
    assert_eq!(world.progressing(), pair("True", "NewReplicaSetAvailable"));
    let status = &world.deployment.status;
    assert_eq!(
        (status.available_replicas, status.observed_generation),
        (3, 1)
    );

    world.change(|web| web.spec.template = template("v2"));
    world.settle();
    assert_eq!(world.sizes(), [("v1".to_owned(), 0), ("v2".to_owned(), 3)]);
    assert_eq!(
        world.deployment.annotations["deployment.kubernetes.io/revision"],
        "2"
    );

    // As `kubectl rollout undo` writes it: the template of the old ReplicaSet.
    world.change(|web| web.spec.template = template("v1"));
    world.settle();
    assert_eq!(world.sizes(), [("v1".to_owned(), 3), ("v2".to_owned(), 0)]);
    let annotations = &world.sets[0].annotations;
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "3");
    assert_eq!(
        annotations["deployment.kubernetes.io/revision-history"],
        "1"
    );
    assert_eq!(
        world.deployment.annotations["deployment.kubernetes.io/revision"],
        "3"
    );
}

#[test]
fn old_replica_sets_beyond_the_limit_are_deleted() {
    let mut world = World::new(rolling(1, 1, 0));
    world.deployment.spec.revision_history_limit = Some(1);
    for image in ["v1", "v2", "v3", "v4"] {
        world.change(|web| web.spec.template = template(image));
        world.settle();
    }
    assert_eq!(world.sizes(), [("v3".to_owned(), 0), ("v4".to_owned(), 1)]);
}

#[test]
fn what_never_becomes_ready_exceeds_the_deadline() {
    let mut world = World::new(rolling(2, 1, 0));
    world.settle();
    world.change(|web| web.spec.template = template("v2"));
    world.act();
    world.broken = vec![world.sets[1].uid.clone()];
    world.settle();
    assert_eq!(world.sizes(), [("v1".to_owned(), 2), ("v2".to_owned(), 1)]);
    assert_eq!(world.progressing(), pair("True", "ReplicaSetUpdated"));
    let again = world.plan().again.unwrap();
    assert_eq!(again.as_secs(), 601);
    world.now += 599.seconds();
    assert!(!world.act());
    world.now += 2.seconds();
    world.settle();
    assert_eq!(
        world.progressing(),
        pair("False", "ProgressDeadlineExceeded")
    );
    let failed = world
        .deployment
        .status
        .conditions
        .iter()
        .find(|c| c.kind == "Progressing");
    let name = &world.sets[1].key.name;
    assert_eq!(
        failed.unwrap().message,
        format!("ReplicaSet \"{name}\" has timed out progressing.")
    );
    assert_eq!(world.plan(), Plan::default());
    // Whoever goes back is done at once.
    world.change(|web| web.spec.template = template("v1"));
    world.settle();
    assert_eq!(world.progressing(), pair("True", "NewReplicaSetAvailable"));
}

#[test]
fn recreate_waits_for_the_end_of_all_old_pods() {
    let mut world = World::new(json!({"replicas": 2, "strategy": {"type": "Recreate"}}));
    world.settle();
    world.running = vec![world.sets[0].uid.clone()];
    world.change(|web| web.spec.template = template("v2"));
    world.settle();
    assert_eq!(world.sizes(), [("v1".to_owned(), 0)]);
    world.running.clear();
    world.settle();
    assert_eq!(world.sizes(), [("v1".to_owned(), 0), ("v2".to_owned(), 2)]);
}

#[test]
fn a_paused_deployment_scales_and_does_not_roll() {
    let mut world = World::new(rolling(2, 1, 0));
    world.settle();
    world.change(|web| {
        web.spec.paused = true;
        web.spec.template = template("v2");
        web.spec.replicas = 4;
    });
    world.settle();
    assert_eq!(world.sizes(), [("v1".to_owned(), 4)]);
    assert_eq!(world.progressing(), pair("Unknown", "DeploymentPaused"));
    world.change(|web| web.spec.paused = false);
    world.settle();
    assert_eq!(world.sizes(), [("v1".to_owned(), 0), ("v2".to_owned(), 4)]);
    assert_eq!(world.progressing(), pair("True", "NewReplicaSetAvailable"));
}

/// The example of Kubernetes' documentation of proportional scaling.
#[test]
fn a_scaling_in_the_middle_of_a_rollout_is_shared() {
    let mut world = World::new(rolling(10, 3, 2));
    world.settle();
    world.change(|web| web.spec.template = template("v2"));
    world.act();
    world.broken = vec![world.sets[1].uid.clone()];
    world.settle();
    assert_eq!(world.sizes(), [("v1".to_owned(), 8), ("v2".to_owned(), 5)]);
    world.change(|web| web.spec.replicas = 15);
    world.act();
    assert_eq!(world.sizes(), [("v1".to_owned(), 11), ("v2".to_owned(), 7)]);
}

#[test]
fn one_in_deletion_only_counts() {
    let mut world = World::new(rolling(2, 1, 0));
    world.settle();
    world.deployment.deleting = true;
    world.change(|web| web.spec.template = template("v2"));
    world.settle();
    assert_eq!(world.sizes(), [("v1".to_owned(), 2)]);
}

#[test]
fn a_hash_ignores_the_label_and_heeds_collisions() {
    let mut labelled = template("v1");
    labelled["metadata"]["labels"][HASH_LABEL] = "x".into();
    labelled["metadata"]["creationTimestamp"] = Value::Null;
    assert!(is_same(&labelled, &template("v1")));
    assert!(!is_same(&template("v1"), &template("v2")));
    assert_eq!(hash(&labelled, None), hash(&template("v1"), None));
    assert_ne!(hash(&labelled, None), hash(&labelled, Some(1)));
}

proptest! {
    /// In whatever order the controllers act, and however often the template
    /// and the size change on the way: never too many pods, never too few
    /// available ones, and the same end.
    #[test]
    fn rollouts_keep_their_bounds_and_end(
        replicas in 1_i64..6,
        (surge, unavailable) in (0_i64..3, 0_i64..3).prop_filter("one must move", |(a, b)| a + b > 0),
        steps in prop::collection::vec((0_usize..4, 0_u8..20), 0..200),
    ) {
        let mut world = World::new(rolling(replicas, surge, unavailable));
        world.settle();
        let fewest = (replicas - unavailable).max(0);
        let mut newest = 1;
        for (who, what) in steps {
            if what == 0 {
                newest += 1;
                let image = format!("v{newest}");
                world.change(|web| web.spec.template = template(&image));
            }
            if who == 3 {
                world.act();
            } else {
                world.step(who);
            }
            prop_assert!(world.total() <= replicas + surge, "{:?}", world.sizes());
            prop_assert!(world.available() >= fewest, "{:?}", world.sizes());
        }
        world.settle();
        let running: Vec<_> = world.sizes().into_iter().filter(|(_, size)| *size > 0).collect();
        prop_assert_eq!(running, [(format!("v{newest}"), replicas)]);
        prop_assert!(world.deployment.status.is_complete(&world.deployment));
        prop_assert_eq!(world.plan(), Plan::default());
    }
}
