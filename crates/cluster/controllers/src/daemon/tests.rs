//! Tests of the decisions.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{Timestamp, ToSpan};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    backoff::Backoff,
    counts::status,
    facts::DaemonSet,
    manage::{Changes, manage},
    nodes::{Eligible, NodeFacts, Nodes, eligible},
    rollout::rollout,
    status::Status,
    template::pod,
    tolerations::with_tolerations,
};
use crate::{
    history::testing::template,
    pod_facts::{Phase, PodFacts},
    workload::{REVISION_LABEL, testing},
};

fn set(mut spec: Value) -> DaemonSet {
    let mut pods = template("v1");
    if let Some(more) = spec["placement"].as_object() {
        pods["spec"].as_object_mut().unwrap().extend(more.clone());
    }
    spec["template"] = pods;
    DaemonSet {
        meta: testing::meta(),
        placement: DaemonSet::placement(&spec["template"]).unwrap(),
        spec: serde_json::from_value(spec).unwrap(),
        status: Status::default(),
    }
}

fn rolling(surge: Value, unavailable: Value) -> Value {
    json!({"updateStrategy": {"type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}})
}

fn nodes(count: usize) -> Nodes {
    (0..count)
        .map(|index| (format!("n{index}"), NodeFacts::default()))
        .collect()
}

fn tainted(effect: &str) -> NodeFacts {
    NodeFacts {
        taints: serde_json::from_value(json!([{"key": "k", "effect": effect}])).unwrap(),
        ..NodeFacts::default()
    }
}

/// The cluster: nodes, and pods by name.
struct Simulation {
    set: DaemonSet,
    nodes: Nodes,
    pods: BTreeMap<String, PodFacts>,
    hash: String,
    now: Timestamp,
    backoff: Backoff,
    created: usize,
}

impl Simulation {
    fn new(spec: Value, count: usize) -> Self {
        Self {
            set: set(spec),
            nodes: nodes(count),
            pods: BTreeMap::new(),
            hash: "v1".into(),
            now: testing::now(),
            backoff: Backoff::default(),
            created: 0,
        }
    }

    fn list(&self) -> Vec<Arc<PodFacts>> {
        self.pods.values().cloned().map(Arc::new).collect()
    }

    fn decide(&mut self) -> Changes {
        let pods = self.list();
        let now = self.now;
        let backoff = &mut self.backoff;
        let mut failed = |node: &str| backoff.failed("s1", 1, node, now);
        let changes = manage(&self.set, &self.nodes, &pods, &self.hash, &mut failed, now);
        if changes.is_empty() && self.set.spec.rolls_out() {
            return Changes {
                wait: changes.wait,
                ..rollout(&self.set, &self.nodes, &pods, &self.hash, now)
            };
        }
        changes
    }

    /// Executes up to `limit` changes, as if the controller crashed afterwards. Returns true if
    /// there were changes.
    fn act(&mut self, limit: usize) -> bool {
        let changes = self.decide();
        let deletions = limit.saturating_sub(changes.create.len());
        for node in changes.create.iter().take(limit) {
            self.created += 1;
            let mut pod = testing::pod(&format!("web-{:03}", self.created));
            pod.pinned = Some(node.clone());
            pod.created = self
                .now
                .checked_add(i64::try_from(self.created).unwrap().seconds())
                .ok();
            pod.labels.insert(REVISION_LABEL.into(), self.hash.clone());
            self.pods.insert(pod.key.name.clone(), pod);
        }
        for pod in changes.delete.iter().take(deletions) {
            self.pods.get_mut(&pod.key.name).unwrap().deleting = true;
        }
        !changes.is_empty()
    }

    /// Lets the scheduler or a node act on a pod. Returns true if there was something to do.
    fn step(&mut self, index: usize) -> bool {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        let Some(name) = names.get(index % names.len().max(1)) else {
            return false;
        };
        let pod = self.pods.get_mut(name).unwrap();
        if pod.deleting {
            self.pods.remove(name);
        } else if pod.node.is_empty() {
            let node = pod.pinned.clone().unwrap();
            if !self.nodes.contains_key(&node) {
                return false;
            }
            pod.node = node;
        } else if pod.phase == Phase::Pending {
            pod.phase = Phase::Running;
        } else if pod.phase == Phase::Running && pod.ready.is_none() {
            pod.ready = Some(Some(self.now));
        } else {
            return false;
        }
        true
    }

    fn settle(&mut self) {
        for _ in 0..1000 {
            let acted = self.act(usize::MAX);
            let mut stepped = false;
            for index in 0..self.pods.len() {
                stepped |= self.step(index);
            }
            if !acted && !stepped {
                return;
            }
        }
        panic!("the simulation does not settle");
    }

    /// Returns the nodes of the pods, and their revisions.
    fn places(&self) -> Vec<(String, String)> {
        let mut places: Vec<_> = self
            .pods
            .values()
            .map(|pod| (pod.node.clone(), pod.revision().to_owned()))
            .collect();
        places.sort();
        places
    }

    fn status(&self) -> Status {
        status(
            &self.set,
            &self.nodes,
            &self.list(),
            &self.hash,
            None,
            self.now,
        )
    }

    fn serving(&self) -> usize {
        let ready = self
            .pods
            .values()
            .filter(|pod| pod.is_ready() && !pod.deleting);
        let mut nodes: Vec<&str> = ready.map(|pod| pod.node.as_str()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    }
}

#[test]
fn each_eligible_node_gets_one_pod() {
    let mut web = Simulation::new(rolling(json!(0), json!(1)), 3);
    web.settle();
    assert_eq!(web.pods.len(), 3);
    let status = web.status();
    assert_eq!(
        (
            status.desired_number_scheduled,
            status.current_number_scheduled
        ),
        (3, 3)
    );
    assert_eq!((status.number_ready, status.number_available), (3, 3));
    assert_eq!(
        (status.updated_number_scheduled, status.number_unavailable),
        (3, 0)
    );
    web.nodes.insert("n3".into(), NodeFacts::default());
    web.settle();
    assert_eq!(web.pods.len(), 4);
    // A node with two pods keeps the older one.
    let mut twin = web.pods.values().next().unwrap().clone();
    twin.key.name = "twin".into();
    twin.created = web.now.checked_add(1.hour()).ok();
    web.pods.insert("twin".into(), twin);
    web.settle();
    assert!(web.pods.len() == 4 && !web.pods.contains_key("twin"));
}

#[test]
fn node_selectors_affinity_and_taints_decide_which_nodes_are_eligible() {
    let plain = set(json!({}));
    let node = NodeFacts::default();
    let labelled = NodeFacts {
        labels: [("disk".into(), "ssd".into())].into(),
        ..NodeFacts::default()
    };
    assert_eq!(eligible(&plain, "n", &node), Eligible::Yes);
    assert_eq!(
        eligible(&plain, "n", &tainted("NoSchedule")),
        Eligible::Stays
    );
    assert_eq!(eligible(&plain, "n", &tainted("NoExecute")), Eligible::No);
    assert_eq!(
        eligible(&plain, "n", &tainted("PreferNoSchedule")),
        Eligible::Yes
    );
    let tolerant = set(json!({"placement": {"tolerations": [{"operator": "Exists"}]}}));
    assert_eq!(
        eligible(&tolerant, "n", &tainted("NoExecute")),
        Eligible::Yes
    );
    let choosy = set(json!({"placement": {"nodeSelector": {"disk": "ssd"}}}));
    assert_eq!(eligible(&choosy, "n", &node), Eligible::No);
    assert_eq!(eligible(&choosy, "n", &labelled), Eligible::Yes);
    let term = json!({"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]});
    let affine = set(json!({"placement": {"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}}}));
    assert_eq!(eligible(&affine, "n", &labelled), Eligible::No);
    let named = set(json!({"placement": {"nodeName": "m"}}));
    assert_eq!(eligible(&named, "n", &node), Eligible::No);
    assert_eq!(eligible(&named, "m", &node), Eligible::Yes);
}

#[test]
fn pods_leave_nodes_that_are_no_longer_eligible() {
    let mut web = Simulation::new(rolling(json!(0), json!(1)), 2);
    web.settle();
    web.nodes.insert("n0".into(), tainted("NoSchedule"));
    web.settle();
    assert_eq!(web.pods.len(), 2);
    let status = web.status();
    assert_eq!(
        (status.desired_number_scheduled, status.number_misscheduled),
        (1, 1)
    );
    web.nodes.insert("n0".into(), tainted("NoExecute"));
    web.settle();
    assert_eq!(web.places(), [("n1".to_owned(), "v1".to_owned())]);
    // A pod waits for a node that no longer exists.
    web.nodes.insert("n2".into(), NodeFacts::default());
    web.act(usize::MAX);
    web.nodes.remove("n2");
    web.settle();
    assert_eq!(web.pods.len(), 1);
}

#[test]
fn pods_are_pinned_to_their_node_and_tolerate_its_problems() {
    let mut web = set(json!({"placement": {"hostNetwork": true}}));
    let generation = "deprecated.daemonset.template.generation";
    web.meta.annotations.insert(generation.into(), "7".into());
    let made = pod(&web, "n1", "abc");
    let required =
        &made["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(
        required["nodeSelectorTerms"],
        json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}])
    );
    assert_eq!(
        made["metadata"]["labels"],
        json!({"app": "web", "controller-revision-hash": "abc", "pod-template-generation": "7"})
    );
    let tolerations = made["spec"]["tolerations"].as_array().unwrap();
    let keys: Vec<_> = tolerations
        .iter()
        .map(|one| one["key"].as_str().unwrap().rsplit('/').next().unwrap())
        .collect();
    assert_eq!(
        keys,
        [
            "not-ready",
            "unreachable",
            "disk-pressure",
            "memory-pressure",
            "pid-pressure",
            "unschedulable",
            "network-unavailable"
        ]
    );
    let own = json!({"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists",
        "effect": "NoExecute", "tolerationSeconds": 5}]});
    let tolerations = with_tolerations(&own)["tolerations"].clone();
    assert_eq!(tolerations.as_array().unwrap().len(), 6);
    assert!(tolerations[0]["tolerationSeconds"].is_null());
    let facts = PodFacts::of(serde_json::from_value(made).unwrap());
    assert_eq!(facts.pinned.as_deref(), Some("n1"));
    assert!(web.is_updated(&facts, "other"), "by generation");
}

#[test]
fn failed_pods_are_replaced_with_increasing_delays() {
    let mut backoff = Backoff::default();
    let now = testing::now();
    let mut failed =
        |seconds: i64, node: &str| backoff.failed("s1", 1, node, now + seconds.seconds());
    assert_eq!(failed(0, "n"), None);
    assert_eq!(failed(0, "n"), Some(Duration::from_secs(1)));
    assert_eq!(failed(0, "m"), None);
    assert_eq!(failed(1, "n"), None);
    assert_eq!(failed(2, "n"), Some(Duration::from_secs(1)));
    assert_eq!(failed(3, "n"), None);
    assert_eq!(failed(6, "n"), Some(Duration::from_secs(1)));
    assert_eq!(failed(9999, "n"), None);
    assert_eq!(failed(9999, "n"), Some(Duration::from_secs(1)));

    let mut web = Simulation::new(rolling(json!(0), json!(1)), 1);
    web.settle();
    web.pods.values_mut().next().unwrap().phase = Phase::Failed;
    let changes = web.decide();
    assert_eq!((changes.delete.len(), changes.ended.len()), (1, 1));
    let changes = web.decide();
    assert!(changes.is_empty() && changes.wait == Some(Duration::from_secs(1)));
}

#[test]
fn an_update_keeps_the_minimum_of_available_pods() {
    for (unavailable, expected) in [
        (json!(1), 1),
        (json!(2), 2),
        (json!("50%"), 2),
        (json!(0), 1),
    ] {
        let mut web = Simulation::new(rolling(json!(0), unavailable.clone()), 4);
        web.settle();
        web.hash = "v2".into();
        assert_eq!(web.decide().delete.len(), expected, "{unavailable}");
        web.settle();
        assert!(web.places().iter().all(|(_, revision)| revision == "v2"));
    }
    // Pods that are not available do not count.
    let mut web = Simulation::new(rolling(json!(0), json!(1)), 3);
    web.act(usize::MAX);
    web.hash = "v2".into();
    assert_eq!(web.decide().delete.len(), 3);
}

#[test]
fn an_update_with_surge_deletes_a_pod_when_its_successor_is_available() {
    let mut web = Simulation::new(rolling(json!(1), json!(0)), 2);
    web.settle();
    web.hash = "v2".into();
    assert_eq!(web.decide().create, ["n0"]);
    web.act(usize::MAX);
    assert!(web.decide().is_empty(), "the new pod is not available");
    web.settle();
    let pairs = ["n0", "n1"].map(|node| (node.to_owned(), "v2".to_owned()));
    assert_eq!(web.places(), pairs);
}

#[test]
fn on_delete_replaces_only_deleted_pods() {
    let mut web = Simulation::new(json!({"updateStrategy": {"type": "OnDelete"}}), 2);
    web.settle();
    web.hash = "v2".into();
    web.settle();
    assert_eq!(web.status().updated_number_scheduled, 0);
    web.pods.values_mut().next().unwrap().deleting = true;
    web.settle();
    assert_eq!(web.status().updated_number_scheduled, 1);
}

#[test]
fn pods_are_available_after_the_minimum_time() {
    let mut spec = rolling(json!(0), json!(1));
    spec["minReadySeconds"] = json!(10);
    let mut web = Simulation::new(spec, 2);
    web.settle();
    let status = web.status();
    assert_eq!((status.number_ready, status.number_available), (2, 0));
    web.now += 10.seconds();
    assert_eq!(web.status().number_available, 2);
}

proptest! {
    /// Invariants for any order of the components' actions, any crash of the controller
    /// between two requests, and any changes of nodes and template: an update never
    /// makes more than the allowed nodes unavailable, and all orders end in the same
    /// state.
    #[test]
    fn all_orders_end_in_the_same_state(
        (surge, unavailable) in prop_oneof![Just((0_usize, 1_usize)), Just((0, 2)), Just((1, 0)), Just((2, 0))],
        steps in prop::collection::vec((0_usize..8, 0_u8..16), 0..200),
    ) {
        let mut web = Simulation::new(rolling(json!(surge), json!(unavailable)), 4);
        web.settle();
        let (mut newest, mut disturbed) = (1, false);
        for (who, what) in steps {
            match what {
                0 => {
                    newest += 1;
                    web.hash = format!("v{newest}");
                }
                1 => {
                    disturbed = true;
                    let name = format!("n{}", who % 6);
                    if web.nodes.remove(&name).is_none() {
                        web.nodes.insert(name, NodeFacts::default());
                    } else {
                        // The collector of pods without a node.
                        web.pods.retain(|_, pod| web.nodes.contains_key(&pod.node) || pod.node.is_empty());
                    }
                }
                2..7 => {
                    web.act(who);
                }
                _ => {
                    web.step(who);
                }
            }
            if !disturbed {
                prop_assert!(web.serving() >= 4 - unavailable, "{:?}", web.places());
                let staying = web.pods.values().filter(|pod| !pod.deleting).count();
                prop_assert!(staying <= 4 + surge, "{:?}", web.places());
            }
        }
        web.settle();
        let expected: Vec<_> = web.nodes.keys().map(|node| (node.clone(), web.hash.clone())).collect();
        prop_assert_eq!(web.places(), expected);
        prop_assert!(web.decide().is_empty());
        let status = web.status();
        prop_assert_eq!(status.updated_number_scheduled, web.nodes.len());
        prop_assert_eq!(status.number_available, web.nodes.len());
    }
}
