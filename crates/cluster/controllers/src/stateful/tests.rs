//! Tests of the plan, simulated without an API server or a clock.
#![allow(clippy::unwrap_used)]

use jiff::ToSpan;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{identity, testing::Simulation};
use crate::{history::testing::template, pod_facts::Phase, workload::Workload};

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = list.iter();
    pairs
        .map(|(name, revision)| ((*name).to_owned(), (*revision).to_owned()))
        .collect()
}

fn rolling(more: Value) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": more})
}

const DATA: &str =
    r#"[{"metadata": {"name": "data", "labels": {"tier": "db"}}, "spec": {"s": 1}}]"#;

fn data() -> Value {
    serde_json::from_str(DATA).unwrap()
}

#[test]
fn pods_are_created_in_order_and_deleted_from_the_highest_ordinal() {
    let mut web = Simulation::new(json!({"replicas": 3}));
    web.act(usize::MAX);
    assert_eq!(web.log, ["+web-0"]);
    assert!(
        web.plan().phases.is_empty(),
        "waits until the first pod is ready"
    );
    web.settle();
    assert_eq!(web.log, ["+web-0", "+web-1", "+web-2"]);
    let status = &web.set.status;
    assert_eq!((status.replicas, status.ready_replicas), (3, 3));
    assert_eq!((status.available_replicas, status.current_replicas), (3, 3));
    assert_eq!(
        (status.current_revision.as_str(), status.collision_count),
        ("v1", Some(0))
    );
    web.change(&json!({"replicas": 1}));
    web.act(usize::MAX);
    assert!(
        web.plan().phases.is_empty(),
        "waits until the last pod is gone"
    );
    web.settle();
    assert_eq!(web.log[3..], ["-web-2", "-web-1"]);
}

#[test]
fn parallel_pods_are_created_and_deleted_at_once() {
    let mut web = Simulation::new(json!({"replicas": 3, "podManagementPolicy": "Parallel"}));
    web.healthy = false;
    web.act(usize::MAX);
    assert_eq!(web.log, ["+web-0", "+web-1", "+web-2"]);
    web.change(&json!({"replicas": 0, "podManagementPolicy": "Parallel"}));
    web.act(usize::MAX);
    assert_eq!(web.log[3..], ["-web-2", "-web-1", "-web-0"]);
    let huge = json!({"replicas": 2_000_000_000, "podManagementPolicy": "Parallel"});
    let huge = Simulation::new(huge).plan();
    assert_eq!(huge.phases.iter().flatten().count(), 500);
}

#[test]
fn ordinals_start_at_the_given_number() {
    let mut web = Simulation::new(json!({"replicas": 2, "ordinals": {"start": 5}}));
    web.settle();
    assert_eq!(web.pods(), pairs(&[("web-5", "v1"), ("web-6", "v1")]));
    web.change(&json!({"replicas": 2, "ordinals": {"start": 6}}));
    web.settle();
    assert_eq!(web.pods(), pairs(&[("web-6", "v1"), ("web-7", "v1")]));
}

#[test]
fn an_update_replaces_pods_from_the_highest_ordinal_down_to_the_partition() {
    let mut web = Simulation::new(json!({"replicas": 3}));
    web.settle();
    web.log.clear();
    web.image = "v2".into();
    web.change(&json!({"updateStrategy": rolling(json!({"partition": 1}))}));
    web.settle();
    assert_eq!(web.log, ["-web-2", "+web-2", "-web-1", "+web-1"]);
    assert_eq!(
        web.pods(),
        pairs(&[("web-0", "v1"), ("web-1", "v2"), ("web-2", "v2")])
    );
    let status = &web.set.status;
    assert_eq!((status.current_replicas, status.updated_replicas), (1, 2));
    assert_eq!(
        (
            status.current_revision.as_str(),
            status.update_revision.as_str()
        ),
        ("v1", "v2")
    );
    // A pod below the partition is created again with the old revision.
    web.pods.remove("web-0");
    web.settle();
    assert_eq!(web.pods()[0].1, "v1");
    web.change(&json!({"updateStrategy": rolling(json!({"partition": 0}))}));
    web.settle();
    assert!(web.pods().iter().all(|(_, revision)| revision == "v2"));
    assert_eq!(web.set.status.current_revision, "v2");
}

#[test]
fn max_unavailable_pods_are_updated_at_once() {
    let strategy = |most: Value| rolling(json!({"partition": 0, "maxUnavailable": most}));
    for (policy, most, expected) in [
        ("OrderedReady", json!(2), 2),
        ("OrderedReady", json!("25%"), 1),
        ("Parallel", json!("50%"), 2),
        ("Parallel", json!("1%"), 1),
    ] {
        let mut web = Simulation::new(json!({"replicas": 4}));
        web.settle();
        web.image = "v2".into();
        web.change(&json!({"podManagementPolicy": policy, "updateStrategy": strategy(most)}));
        web.act(usize::MAX);
        let gone = web.pods.values().filter(|pod| pod.deleting).count();
        assert_eq!(gone, expected, "{policy}");
        web.settle();
        assert_eq!(web.set.status.current_revision, "v2");
    }
}

/// An update of OrderedReady pods waits for a broken pod. An update of Parallel pods replaces it.
#[test]
fn broken_pods_block_an_ordered_update() {
    for (policy, replaced) in [("OrderedReady", false), ("Parallel", true)] {
        let strategy = rolling(json!({"partition": 0}));
        let spec = json!({
            "replicas": 2, "podManagementPolicy": policy, "updateStrategy": strategy,
        });
        let mut web = Simulation::new(spec.clone());
        web.settle();
        web.pods.get_mut("web-0").unwrap().ready = None;
        web.healthy = false;
        web.image = "v2".into();
        web.change(&spec);
        web.settle();
        assert_eq!(web.pods()[0].1 == "v2", replaced, "{policy}");
    }
}

#[test]
fn on_delete_replaces_only_deleted_pods() {
    let mut web = Simulation::new(json!({"replicas": 2}));
    web.settle();
    web.image = "v2".into();
    web.change(&json!({"updateStrategy": {"type": "OnDelete"}}));
    web.settle();
    assert_eq!(web.pods(), pairs(&[("web-0", "v1"), ("web-1", "v1")]));
    web.pods.remove("web-0");
    web.settle();
    assert_eq!(web.pods(), pairs(&[("web-0", "v2"), ("web-1", "v1")]));
}

#[test]
fn ended_pods_are_replaced() {
    for phase in [Phase::Failed, Phase::Succeeded] {
        let mut web = Simulation::new(json!({"replicas": 2}));
        web.settle();
        web.log.clear();
        let pod = web.pods.get_mut("web-0").unwrap();
        (pod.phase, pod.ready) = (phase, None);
        web.settle();
        assert_eq!(web.log, ["-web-0", "+web-0"]);
    }
}

#[test]
fn pods_are_available_after_the_minimum_time() {
    let mut web = Simulation::new(json!({"replicas": 2, "minReadySeconds": 10}));
    web.settle();
    assert_eq!(web.log, ["+web-0"]);
    let status = &web.set.status;
    assert_eq!((status.ready_replicas, status.available_replicas), (1, 0));
    web.now += 10.seconds();
    web.settle();
    web.now += 10.seconds();
    web.settle();
    assert_eq!(web.log, ["+web-0", "+web-1"]);
    assert_eq!(web.set.status.available_replicas, 2);
}

#[test]
fn a_set_in_deletion_only_updates_its_status() {
    let mut web = Simulation::new(json!({"replicas": 2}));
    web.settle();
    web.set.meta.deleting = true;
    web.change(&json!({"replicas": 5}));
    web.settle();
    assert_eq!(web.pods.len(), 2);
    assert_eq!(web.set.status.observed_generation, 2);
}

#[test]
fn adopted_pods_get_their_labels() {
    let mut web = Simulation::new(json!({"replicas": 1}));
    web.settle();
    web.pods
        .get_mut("web-0")
        .unwrap()
        .labels
        .remove(identity::NAME_LABEL);
    web.settle();
    assert_eq!(web.pods["web-0"].labels[identity::NAME_LABEL], "web-0");
    assert_eq!(web.pods["web-0"].labels[identity::INDEX_LABEL], "0");
    assert_eq!(web.log, ["+web-0"]);
}

#[test]
fn pods_have_their_name_volumes_and_labels() {
    let mut web = Simulation::new(json!({"volumeClaimTemplates": data()})).set;
    let mut pod_template = template("v1");
    pod_template["spec"]["volumes"] = json!([{"name": "data"}, {"name": "tmp"}]);
    let pod = identity::pod(&web, 3, &pod_template, "web-abc");
    assert_eq!(pod["metadata"]["name"], "web-3");
    assert_eq!(pod["metadata"]["generateName"], "web-");
    assert_eq!(
        pod["metadata"]["labels"],
        json!({"app": "web", "apps.kubernetes.io/pod-index": "3",
               "controller-revision-hash": "web-abc",
               "statefulset.kubernetes.io/pod-name": "web-3"})
    );
    assert_eq!(pod["spec"]["hostname"], "web-3");
    assert_eq!(pod["spec"]["subdomain"], "web");
    assert_eq!(
        pod["spec"]["volumes"],
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-3"}},
               {"name": "tmp"}])
    );
    let claim = &identity::claims(&web, 3)[0];
    let claim = identity::claim_object(&web, claim);
    assert_eq!(claim["metadata"]["name"], "data-web-3");
    assert_eq!(
        claim["metadata"]["labels"],
        json!({"app": "web", "tier": "db"})
    );
    assert_eq!(claim["spec"], json!({"s": 1}));
    web.meta.key.name = "a-1".into();
    assert!(web.accepts_name("a-1-0") && !web.accepts_name("a-1") && !web.accepts_name("a-2-0"));
    assert!(identity::owns_claim(&web, "data-a-1-7"));
    assert!(!identity::owns_claim(&web, "data-a-2-7") && !identity::owns_claim(&web, "data"));
}

#[test]
fn the_retention_policy_sets_the_owners_of_claims() {
    for (deleted, scaled, kept, surplus) in [
        ("Retain", "Retain", None, None),
        ("Delete", "Retain", Some("s1"), Some("s1")),
        ("Retain", "Delete", None, Some("p2")),
        ("Delete", "Delete", Some("s1"), Some("p2")),
    ] {
        let spec = json!({
            "replicas": 2, "volumeClaimTemplates": data(),
            "persistentVolumeClaimRetentionPolicy":
                {"whenDeleted": deleted, "whenScaled": scaled},
        });
        let mut web = Simulation::new(spec.clone());
        web.settle();
        let owner = |web: &Simulation, name: &str| {
            let owners = &web.claims[name].owners;
            owners.first().map(|owner| owner.uid.clone())
        };
        assert_eq!(
            owner(&web, "data-web-1").as_deref(),
            kept,
            "{deleted}, {scaled}"
        );
        let mut smaller = spec;
        smaller["replicas"] = json!(1);
        web.change(&smaller);
        web.act(usize::MAX);
        assert_eq!(
            owner(&web, "data-web-1").as_deref(),
            surplus,
            "{deleted}, {scaled}"
        );
        assert_eq!(
            owner(&web, "data-web-0").as_deref(),
            kept,
            "{deleted}, {scaled}"
        );
        web.settle();
        let is_gone = !web.claims.contains_key("data-web-1");
        assert_eq!(is_gone, scaled == "Delete");
        // A pod waits until the claim of its predecessor is deleted.
        if is_gone {
            let mut stale = web.claims["data-web-0"].clone();
            stale.name = "data-web-1".into();
            stale.owners = serde_json::from_value(json!([
                {"apiVersion": "v1", "kind": "Pod", "name": "web-1", "uid": "p2", "controller": true}
            ]))
            .unwrap();
            web.claims.insert("data-web-1".into(), stale);
            web.change(&json!({
                "replicas": 2, "volumeClaimTemplates": data(),
                "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"},
            }));
            web.settle();
            assert_eq!(web.pods.len(), 1);
            web.claims.remove("data-web-1");
            web.settle();
            assert_eq!(web.pods.len(), 2);
        }
    }
}

proptest! {
    /// Invariants for any order of the components' actions, any crash of the controller
    /// between two requests, and any changes of size and template: ordered sets start
    /// no more pods at a time than `maxUnavailable`, unless pods fail, and all sets end
    /// in the same state.
    #[test]
    fn all_orders_end_in_the_same_state(
        parallel in any::<bool>(),
        unavailable in 1_u32..3,
        steps in prop::collection::vec((0_usize..8, 0_u8..24), 0..200),
    ) {
        let policy = if parallel { "Parallel" } else { "OrderedReady" };
        let spec = |replicas: u32| json!({
            "replicas": replicas, "podManagementPolicy": policy, "volumeClaimTemplates": data(),
            "updateStrategy": rolling(json!({"partition": 0, "maxUnavailable": unavailable})),
            "persistentVolumeClaimRetentionPolicy":
                {"whenDeleted": "Delete", "whenScaled": "Delete"},
        });
        let mut web = Simulation::new(spec(3));
        let (mut replicas, mut newest, mut failed) = (3, 1, false);
        for (who, what) in steps {
            match what {
                0 => {
                    newest += 1;
                    web.image = format!("v{newest}");
                    web.change(&spec(replicas));
                }
                1 => {
                    replicas = u32::try_from(who).unwrap() % 4 + 1;
                    web.change(&spec(replicas));
                }
                2 => {
                    failed = true;
                    // As in Kubernetes, a failed pod blocks the deletion of ordered pods with
                    // higher ordinals if it is also surplus.
                    let index = if parallel { who } else { 0 };
                    if let Some(pod) = web.pods.values_mut().nth(index) {
                        (pod.phase, pod.ready) = (Phase::Failed, None);
                    }
                }
                3..10 => {
                    web.act(who);
                }
                _ => {
                    web.step(who);
                }
            }
            if !parallel && !failed {
                let creating = web.pods.values();
                let creating = creating.filter(|pod| {
                    !pod.deleting && !pod.has_ended() && !pod.is_ready()
                });
                let most = usize::try_from(unavailable).unwrap();
                prop_assert!(creating.count() <= most.max(1), "{:?}", web.pods());
            }
        }
        web.settle();
        let image = format!("v{newest}");
        let expected: Vec<_> = (0..replicas)
            .map(|index| (format!("web-{index}"), image.clone()))
            .collect();
        prop_assert_eq!(web.pods(), expected);
        for index in 0..replicas {
            let claim = &web.claims[&format!("data-web-{index}")];
            prop_assert_eq!(claim.owners[0].uid.as_str(), "s1");
        }
        let status = &web.set.status;
        prop_assert_eq!(&status.update_revision, &image);
        prop_assert_eq!(status.replicas, i64::from(replicas));
        prop_assert_eq!(status.updated_replicas, i64::from(replicas));
        prop_assert_eq!(&status.current_revision, &image);
        prop_assert!(web.plan().phases.is_empty());
    }
}
