//! Tests of the plan, simulated without an API server or a clock.
#![allow(clippy::unwrap_used)]

use jiff::ToSpan;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    hash::{HASH_LABEL, hash, is_same},
    plan::Plan,
    testing::{Simulation, template},
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
fn a_rollout_and_a_rollback_update_the_revisions() {
    let mut simulation = Simulation::new(rolling(3, 1, 0));
    simulation.settle();
    assert_eq!(simulation.sizes(), [("v1".to_owned(), 3)]);
    assert_eq!(
        simulation.progressing(),
        pair("True", "NewReplicaSetAvailable")
    );
    let status = &simulation.deployment.status;
    assert_eq!(
        (status.available_replicas, status.observed_generation),
        (3, 1)
    );

    simulation.change(|web| web.spec.template = template("v2"));
    simulation.settle();
    assert_eq!(
        simulation.sizes(),
        [("v1".to_owned(), 0), ("v2".to_owned(), 3)]
    );
    assert_eq!(
        simulation.deployment.annotations["deployment.kubernetes.io/revision"],
        "2"
    );

    // `kubectl rollout undo` also writes the template of the old ReplicaSet.
    simulation.change(|web| web.spec.template = template("v1"));
    simulation.settle();
    assert_eq!(
        simulation.sizes(),
        [("v1".to_owned(), 3), ("v2".to_owned(), 0)]
    );
    let annotations = &simulation.sets[0].annotations;
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "3");
    assert_eq!(
        annotations["deployment.kubernetes.io/revision-history"],
        "1"
    );
    assert_eq!(
        simulation.deployment.annotations["deployment.kubernetes.io/revision"],
        "3"
    );
}

#[test]
fn old_replica_sets_beyond_the_limit_are_deleted() {
    let mut simulation = Simulation::new(rolling(1, 1, 0));
    simulation.deployment.spec.revision_history_limit = Some(1);
    for image in ["v1", "v2", "v3", "v4"] {
        simulation.change(|web| web.spec.template = template(image));
        simulation.settle();
    }
    assert_eq!(
        simulation.sizes(),
        [("v3".to_owned(), 0), ("v4".to_owned(), 1)]
    );
}

#[test]
fn a_rollout_without_ready_pods_exceeds_the_deadline() {
    let mut simulation = Simulation::new(rolling(2, 1, 0));
    simulation.settle();
    simulation.change(|web| web.spec.template = template("v2"));
    simulation.act();
    simulation.broken = vec![simulation.sets[1].uid.clone()];
    simulation.settle();
    assert_eq!(
        simulation.sizes(),
        [("v1".to_owned(), 2), ("v2".to_owned(), 1)]
    );
    assert_eq!(simulation.progressing(), pair("True", "ReplicaSetUpdated"));
    let requeue_after = simulation.plan().requeue_after.unwrap();
    assert_eq!(requeue_after.as_secs(), 601);
    simulation.now += 599.seconds();
    assert!(!simulation.act());
    simulation.now += 2.seconds();
    simulation.settle();
    assert_eq!(
        simulation.progressing(),
        pair("False", "ProgressDeadlineExceeded")
    );
    let failed = simulation
        .deployment
        .status
        .conditions
        .iter()
        .find(|c| c.kind == "Progressing");
    let name = &simulation.sets[1].key.name;
    assert_eq!(
        failed.unwrap().message,
        format!("ReplicaSet \"{name}\" has timed out progressing.")
    );
    assert_eq!(simulation.plan(), Plan::default());
    // A rollback is complete immediately.
    simulation.change(|web| web.spec.template = template("v1"));
    simulation.settle();
    assert_eq!(
        simulation.progressing(),
        pair("True", "NewReplicaSetAvailable")
    );
}

#[test]
fn recreate_waits_until_all_old_pods_have_ended() {
    let mut simulation = Simulation::new(json!({"replicas": 2, "strategy": {"type": "Recreate"}}));
    simulation.settle();
    simulation.running = vec![simulation.sets[0].uid.clone()];
    simulation.change(|web| web.spec.template = template("v2"));
    simulation.settle();
    assert_eq!(simulation.sizes(), [("v1".to_owned(), 0)]);
    simulation.running.clear();
    simulation.settle();
    assert_eq!(
        simulation.sizes(),
        [("v1".to_owned(), 0), ("v2".to_owned(), 2)]
    );
}

#[test]
fn a_paused_deployment_scales_and_does_not_roll_out() {
    let mut simulation = Simulation::new(rolling(2, 1, 0));
    simulation.settle();
    simulation.change(|web| {
        web.spec.paused = true;
        web.spec.template = template("v2");
        web.spec.replicas = 4;
    });
    simulation.settle();
    assert_eq!(simulation.sizes(), [("v1".to_owned(), 4)]);
    assert_eq!(
        simulation.progressing(),
        pair("Unknown", "DeploymentPaused")
    );
    simulation.change(|web| web.spec.paused = false);
    simulation.settle();
    assert_eq!(
        simulation.sizes(),
        [("v1".to_owned(), 0), ("v2".to_owned(), 4)]
    );
    assert_eq!(
        simulation.progressing(),
        pair("True", "NewReplicaSetAvailable")
    );
}

/// The example in the Kubernetes documentation of proportional scaling.
#[test]
fn scaling_during_a_rollout_is_proportional() {
    let mut simulation = Simulation::new(rolling(10, 3, 2));
    simulation.settle();
    simulation.change(|web| web.spec.template = template("v2"));
    simulation.act();
    simulation.broken = vec![simulation.sets[1].uid.clone()];
    simulation.settle();
    assert_eq!(
        simulation.sizes(),
        [("v1".to_owned(), 8), ("v2".to_owned(), 5)]
    );
    simulation.change(|web| web.spec.replicas = 15);
    simulation.act();
    assert_eq!(
        simulation.sizes(),
        [("v1".to_owned(), 11), ("v2".to_owned(), 7)]
    );
}

#[test]
fn a_deployment_in_deletion_only_updates_its_status() {
    let mut simulation = Simulation::new(rolling(2, 1, 0));
    simulation.settle();
    simulation.deployment.deleting = true;
    simulation.change(|web| web.spec.template = template("v2"));
    simulation.settle();
    assert_eq!(simulation.sizes(), [("v1".to_owned(), 2)]);
}

#[test]
fn a_hash_ignores_the_label_and_depends_on_collisions() {
    let mut labelled = template("v1");
    labelled["metadata"]["labels"][HASH_LABEL] = "x".into();
    labelled["metadata"]["creationTimestamp"] = Value::Null;
    assert!(is_same(&labelled, &template("v1")));
    assert!(!is_same(&template("v1"), &template("v2")));
    assert_eq!(hash(&labelled, None), hash(&template("v1"), None));
    assert_ne!(hash(&labelled, None), hash(&labelled, Some(1)));
}

proptest! {
    /// Invariants for any order of the controllers' actions and any changes of
    /// template and size during the rollout: the bounds on pods and available pods
    /// always hold, and all rollouts end in the same state.
    #[test]
    fn rollouts_respect_their_bounds_and_complete(
        replicas in 1_i64..6,
        (surge, unavailable) in (0_i64..3, 0_i64..3).prop_filter("one of both must be positive", |(a, b)| a + b > 0),
        steps in prop::collection::vec((0_usize..4, 0_u8..20), 0..200),
    ) {
        let mut simulation = Simulation::new(rolling(replicas, surge, unavailable));
        simulation.settle();
        let fewest = (replicas - unavailable).max(0);
        let mut newest = 1;
        for (who, what) in steps {
            if what == 0 {
                newest += 1;
                let image = format!("v{newest}");
                simulation.change(|web| web.spec.template = template(&image));
            }
            if who == 3 {
                simulation.act();
            } else {
                simulation.step(who);
            }
            prop_assert!(simulation.total() <= replicas + surge, "{:?}", simulation.sizes());
            prop_assert!(simulation.available() >= fewest, "{:?}", simulation.sizes());
        }
        simulation.settle();
        let running: Vec<_> = simulation.sizes().into_iter().filter(|(_, size)| *size > 0).collect();
        prop_assert_eq!(running, [(format!("v{newest}"), replicas)]);
        prop_assert!(simulation.deployment.status.is_complete(&simulation.deployment));
        prop_assert_eq!(simulation.plan(), Plan::default());
    }
}
