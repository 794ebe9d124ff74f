//! Tests with the examples of TensorFlow's own tests, and cases where TensorFlow's
//! resolver is wrong.
#![allow(clippy::unwrap_used)]

use std::{cmp::Ordering, collections::BTreeSet};

use jiff::Timestamp;
use longshore_model::meta::COMPLETION_INDEX;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{missing::missing, order::natural_order, policy::Act};

fn pod(value: Value) -> PodFacts {
    serde_json::from_value(value).unwrap()
}

fn running(name: &str, ip: &str) -> PodFacts {
    in_phase(name, ip, "Running")
}

fn in_phase(name: &str, ip: &str, phase: &str) -> PodFacts {
    pod(json!({
        "metadata": {"name": name, "namespace": "default"},
        "status": {"phase": phase, "podIP": ip, "hostIP": "192.168.0.1"},
    }))
}

fn indexed(name: &str, index: u32) -> PodFacts {
    let mut pod = running(name, &format!("10.0.0.{index}"));
    pod.metadata
        .annotations
        .insert(COMPLETION_INDEX.into(), index.to_string());
    pod
}

fn select<'a>(role: &'a str, selectors: &'a [Vec<PodFacts>]) -> Selected<'a> {
    Selected {
        role,
        pods: selectors.iter().map(|pods| pods.iter().collect()).collect(),
    }
}

fn spec(selectors: &[Vec<PodFacts>], assembly: &Assembly) -> Result<Value, String> {
    let tasks = assemble(&[select("worker", selectors)], assembly);
    let tasks = tasks.map_err(|error| error.to_string())?;
    Ok(tasks.spec().as_dict())
}

fn dict(selectors: &[Vec<PodFacts>], assembly: &Assembly) -> Value {
    spec(selectors, assembly).unwrap()
}

fn error(selectors: &[Vec<PodFacts>], assembly: &Assembly) -> String {
    spec(selectors, assembly).unwrap_err()
}

fn ordered(order: Order) -> Assembly {
    Assembly {
        order,
        ..Assembly::default()
    }
}

fn with_policy(policy: Policy) -> Assembly {
    Assembly {
        policy,
        ..Assembly::default()
    }
}

#[test]
fn pods_are_sorted_by_name() {
    let pods = [vec![
        running("tensorflow-abc123", "10.1.2.3"),
        running("tensorflow-def456", "10.1.2.4"),
        running("tensorflow-999999", "10.1.2.5"),
    ]];
    let expected = json!({"worker": ["10.1.2.5:8470", "10.1.2.3:8470", "10.1.2.4:8470"]});
    assert_eq!(dict(&pods, &ordered(Order::Lexical)), expected);
    assert_eq!(dict(&pods, &Assembly::default()), expected);
}

#[test]
fn selectors_keep_their_order() {
    let pods = [vec![running("z", "1.1.1.1")], vec![running("a", "2.2.2.2")]];
    assert_eq!(
        dict(&pods, &Assembly::default()),
        json!({"worker": ["1.1.1.1:8470", "2.2.2.2:8470"]})
    );
}

#[test]
fn a_pod_that_is_not_running_gives_the_error_of_tensorflow() {
    let pods = [vec![in_phase("tensorflow-abc123", "10.1.2.3", "Failed")]];
    for assembly in [Assembly::default(), Assembly::tensorflow()] {
        assert_eq!(
            error(&pods, &assembly),
            "Pod \"tensorflow-abc123\" is not running; phase: \"Failed\""
        );
    }
}

/// Pods in every state. All running pods have an address.
fn pods_in_every_state() -> [(&'static str, PodFacts); 6] {
    let ready = |name| {
        let mut pod = running(name, "1.1.1.1");
        let condition = json!([{"type": "Ready", "status": "True"}]);
        pod.status.conditions = serde_json::from_value(condition).unwrap();
        pod
    };
    let mut deleting = ready("deleting");
    deleting.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH);
    let mut deleting_finished = in_phase("deleting-finished", "1.1.1.1", "Failed");
    deleting_finished.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH);
    [
        ("ready", ready("ready")),
        ("unready", running("unready", "1.1.1.1")),
        ("pending", in_phase("pending", "1.1.1.1", "Pending")),
        ("finished", in_phase("finished", "1.1.1.1", "Succeeded")),
        ("deleting", deleting),
        ("deleting-finished", deleting_finished),
    ]
}

#[test]
fn policies_refuse_skip_and_keep_pods_by_state() {
    let planned = Policy {
        pending: Act::Keep,
        finished: Act::Skip,
        terminating: Act::Skip,
        unready: Act::Refuse,
        ..Policy::default()
    };
    // Each character stands for a pod state: + included, - skipped, ! refused.
    for (policy, acts) in [
        (Policy::default(), "++!!!!"),
        (Policy::tensorflow(), "++!!+!"),
        (Policy::skip_finished(), "++!---"),
        (Policy::running(), "++----"),
        (Policy::ready(), "+-----"),
        (planned, "+!+---"),
    ] {
        let found: String = pods_in_every_state()
            .map(|(_, pod)| match spec(&[vec![pod]], &with_policy(policy)) {
                Err(_) => '!',
                Ok(spec) if spec == json!({"worker": []}) => '-',
                Ok(_) => '+',
            })
            .iter()
            .collect();
        assert_eq!(found, acts, "{policy:?}");
    }
}

#[test]
fn errors_name_the_pod_and_its_state() {
    let [_, (_, unready), (_, pending), _, (_, deleting), _] = pods_in_every_state();
    let strict = with_policy(Policy {
        unready: Act::Refuse,
        ..Policy::default()
    });
    assert_eq!(
        error(&[vec![unready]], &strict),
        "Pod \"unready\" is running but not ready; wait until it is ready, or do not require readiness"
    );
    assert_eq!(
        error(&[vec![pending]], &strict),
        "Pod \"pending\" is not running; phase: \"Pending\""
    );
    assert_eq!(
        error(&[vec![deleting]], &strict),
        "Pod \"deleting\" is being deleted; wait until it is deleted, or skip terminating pods"
    );
}

#[test]
fn names_sort_in_numeric_order_and_completion_indices_take_precedence() {
    let pods = [vec![
        running("w-10", "10.0.0.10"),
        running("w-2", "10.0.0.2"),
    ]];
    assert_eq!(
        dict(&pods, &Assembly::default()),
        json!({"worker": ["10.0.0.2:8470", "10.0.0.10:8470"]})
    );
    assert_eq!(
        dict(&pods, &ordered(Order::Lexical)),
        json!({"worker": ["10.0.0.10:8470", "10.0.0.2:8470"]})
    );
    assert_eq!(
        error(&pods, &ordered(Order::CompletionIndex)),
        "Pod \"w-2\" has no completion index; select pods of an Indexed Job, or order by name"
    );
    let pods = [vec![indexed("b-y", 0), indexed("a-x", 3)]];
    let holes = json!({"worker": {"0": "10.0.0.0:8470", "3": "10.0.0.3:8470"}});
    assert_eq!(dict(&pods, &Assembly::default()), holes);
    assert_eq!(dict(&pods, &ordered(Order::CompletionIndex)), holes);
    assert_eq!(
        dict(&pods, &ordered(Order::Lexical)),
        json!({"worker": ["10.0.0.3:8470", "10.0.0.0:8470"]})
    );
}

#[test]
fn one_role_can_have_several_indexed_jobs() {
    let pods = [
        vec![indexed("late-1", 1), indexed("late-0", 0)],
        vec![indexed("early-0", 0), indexed("early-1", 1)],
    ];
    assert_eq!(
        dict(&pods, &Assembly::default()),
        json!({"worker": ["10.0.0.0:8470", "10.0.0.1:8470", "10.0.0.0:8470", "10.0.0.1:8470"]})
    );
    let found = error(&pods, &ordered(Order::CompletionIndex));
    assert_eq!(
        found,
        "Pods \"late-0\" and \"early-0\" both have completion index 0 in role \"worker\"; select the pods of one Job only"
    );
}

#[test]
fn a_pod_that_two_selectors_match_is_refused_or_counted_once() {
    let pods = [vec![running("a", "1.1.1.1")], vec![running("a", "1.1.1.1")]];
    assert_eq!(
        error(&pods, &Assembly::default()),
        "Pod \"a\" is matched by two selectors, of role \"worker\" and role \"worker\"; make the selectors disjoint, or count each pod once"
    );
    let once = with_policy(Policy {
        doubled: Doubled::First,
        ..Policy::default()
    });
    assert_eq!(dict(&pods, &once), json!({"worker": ["1.1.1.1:8470"]}));
}

#[test]
fn pods_with_the_same_name_in_two_namespaces_are_two_tasks() {
    let mut other = running("a", "2.2.2.2");
    other.metadata.namespace = Some("another".to_owned());
    let pods = [vec![running("a", "1.1.1.1"), other]];
    assert_eq!(
        dict(&pods, &Assembly::default()),
        json!({"worker": ["2.2.2.2:8470", "1.1.1.1:8470"]})
    );
}

fn at(pod: &PodFacts, address: Address, family: Family, port: Port) -> Result<String, String> {
    let assembly = Assembly {
        address,
        family,
        port,
        ..Assembly::default()
    };
    let tasks = assemble(
        &[Selected {
            role: "worker",
            pods: vec![vec![pod]],
        }],
        &assembly,
    );
    let tasks = tasks.map_err(|error| error.to_string())?;
    Ok(tasks.get("worker", 0).unwrap().address.clone())
}

#[test]
fn every_kind_of_address_is_supported() {
    let pod = pod(json!({
        "metadata": {"name": "run-worker-0-x7k2p", "namespace": "team"},
        "spec": {"hostname": "run-worker-0", "subdomain": "run"},
        "status": {
            "phase": "Running", "hostIP": "192.168.0.1", "podIP": "fd00::1",
            "podIPs": [{"ip": "fd00::1"}, {"ip": "10.0.0.1"}],
        },
    }));
    let one = || Port::Number(1);
    let primary = |address| at(&pod, address, Family::Primary, one()).unwrap();
    assert_eq!(primary(Address::PodIp), "[fd00::1]:1");
    assert_eq!(primary(Address::HostIp), "192.168.0.1:1");
    assert_eq!(primary(Address::Dns), "run-worker-0.run.team.svc:1");
    assert_eq!(primary(Address::Hostname), "run-worker-0:1");
    let of = |address, family| at(&pod, address, family, one());
    assert_eq!(of(Address::PodIp, Family::V4).unwrap(), "10.0.0.1:1");
    assert_eq!(of(Address::PodIp, Family::V6).unwrap(), "[fd00::1]:1");
    assert_eq!(
        of(Address::HostIp, Family::V6).unwrap_err(),
        "Pod \"run-worker-0-x7k2p\" has no IPv6 address in status.hostIPs; wait until it has one, or choose another kind of address"
    );
    let bare = running("a", "");
    assert!(
        at(&bare, Address::PodIp, Family::Primary, one())
            .unwrap_err()
            .starts_with("Pod \"a\" has no status.podIP")
    );
    assert!(
        at(&bare, Address::Dns, Family::Primary, one())
            .unwrap_err()
            .starts_with("Pod \"a\" has no spec.subdomain")
    );
}

#[test]
fn ports_are_set_by_number_or_by_name() {
    let mut pod = running("a", "1.1.1.1");
    pod.spec.containers = serde_json::from_value(json!([
        {"ports": [{"containerPort": 80}]},
        {"ports": [{"name": "grpc", "containerPort": 2222, "hostPort": 32222}]},
    ]))
    .unwrap();
    let named = |name: &str| Port::Named(name.to_owned());
    let with = |address, port| at(&pod, address, Family::Primary, port);
    assert_eq!(with(Address::PodIp, named("grpc")).unwrap(), "1.1.1.1:2222");
    // With a node address, the host port is used.
    assert_eq!(
        with(Address::HostIp, named("grpc")).unwrap(),
        "192.168.0.1:32222"
    );
    assert_eq!(
        with(Address::PodIp, named("http")).unwrap_err(),
        "Pod \"a\" has no port named \"http\"; it has grpc"
    );
    // A number out of range is not a port.
    for number in [-1, 0, 65_536, i32::MAX] {
        pod.spec.containers[1].ports[0].container_port = number;
        let error = at(&pod, Address::PodIp, Family::Primary, named("grpc")).unwrap_err();
        assert!(error.starts_with("Pod \"a\" has no port named"), "{error}");
    }
    pod.spec.containers.clear();
    assert_eq!(
        at(&pod, Address::PodIp, Family::Primary, named("http")).unwrap_err(),
        "Pod \"a\" has no port named \"http\"; its containers have no named ports: use the port number"
    );
}

#[test]
fn missing_tasks_are_reported_with_reasons() {
    let mut unscheduled = in_phase("w-2", "", "Pending");
    unscheduled.status = serde_json::from_value(json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available",
    }]}))
    .unwrap();
    let mut unpulled = in_phase("w-3", "", "Pending");
    unpulled.status.container_statuses =
        serde_json::from_value(json!([{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]))
            .unwrap();
    let workers = [vec![
        running("w-0", "1.1.1.1"),
        in_phase("w-1", "", "Pending"),
        unscheduled,
        unpulled,
        running("w-4", ""),
    ]];
    let none = [vec![]];
    let roles = [select("worker", &workers), select("ps", &none)];
    let needed = [("worker", 7), ("ps", 1), ("chief", 1)];
    let needed = needed
        .map(|(role, number)| (role.to_owned(), number))
        .into();
    let found = missing(&roles, &needed, &Assembly::default());
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "chief: 0 of 1; no selector is given for this role",
            "worker: 1 of 7; w-1 is Pending, w-2 is Pending (Unschedulable: 0/3 nodes are available), \
             w-3 is Pending (ImagePullBackOff), Pod \"w-4\" has no status.podIP; wait until it has one, \
             or choose another kind of address, 2 not created yet",
            "ps: 0 of 1; no pod matches",
        ]
    );
    let enough = BTreeMap::from([("worker".to_owned(), 1)]);
    assert!(missing(&roles, &enough, &Assembly::default()).is_empty());
    let many: Vec<PodFacts> = (0..13)
        .map(|i| in_phase(&format!("w-{i}"), "", "Pending"))
        .collect();
    let found = missing(
        &[select("worker", &[many])],
        &[("worker".to_owned(), 1)].into(),
        &Assembly::default(),
    );
    assert!(
        found[0].to_string().ends_with("w-9 is Pending, and 3 more"),
        "{}",
        found[0]
    );
}

#[test]
fn accelerators_of_all_containers_are_summed() {
    let pod = pod(json!({"spec": {"containers": [
        {"resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "4", "google.com/tpu": "0"}}},
        {"resources": {"limits": {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": "many"}}},
    ]}}));
    assert_eq!(
        devices::of(&pod),
        BTreeMap::from([("nvidia.com/gpu".to_owned(), 3)])
    );
}

prop_compose! {
    /// A pod in any state. The few different names make collisions likely.
    fn any_pod()(
        name in "(w|ps)-[0-9]{1,2}",
        namespace in "[ab]",
        phase in prop::sample::select(vec!["Running", "Running", "Pending", "Failed", ""]),
        ip in prop::sample::select(vec!["", "10.0.0.1", "fd00::1", "no address"]),
        deleted in prop::bool::weighted(0.1),
        index in prop::option::weighted(0.5, "[0-9]{1,2}|x"),
    ) -> PodFacts {
        let mut pod = in_phase(&name, ip, phase);
        pod.metadata.namespace = Some(namespace);
        pod.metadata.deletion_timestamp = deleted.then_some(Timestamp::UNIX_EPOCH);
        pod.metadata.labels.extend(index.map(|index| (COMPLETION_INDEX.to_owned(), index)));
        pod
    }
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let act = || prop::sample::select(vec![Act::Refuse, Act::Skip, Act::Keep]);
    let doubled = prop::sample::select(vec![Doubled::Refuse, Doubled::First, Doubled::Each]);
    (act(), act(), act(), act(), doubled).prop_map(
        |(pending, unready, terminating, finished, doubled)| Policy {
            pending,
            unready,
            terminating,
            finished,
            doubled,
        },
    )
}

prop_compose! {
    fn any_assembly()(
        policy in any_policy(),
        order in prop::sample::select(vec![Order::Natural, Order::Lexical, Order::CompletionIndex]),
        address in prop::sample::select(vec![Address::PodIp, Address::HostIp, Address::Dns, Address::Hostname]),
        family in prop::sample::select(vec![Family::Primary, Family::V4, Family::V6]),
    ) -> Assembly {
        Assembly { policy, order, address, family, ..Assembly::default() }
    }
}

fn any_roles() -> impl Strategy<Value = Vec<Vec<Vec<PodFacts>>>> {
    let pods = prop::collection::vec(any_pod(), 0..6);
    prop::collection::vec(prop::collection::vec(pods, 0..3), 0..3)
}

const ROLES: [&str; 3] = ["worker", "ps", "chief"];

fn selected(roles: &[Vec<Vec<PodFacts>>]) -> Vec<Selected<'_>> {
    let roles = ROLES.iter().zip(roles);
    roles
        .map(|(role, selectors)| select(role, selectors))
        .collect()
}

proptest! {
    #[test]
    fn natural_order_is_a_total_order(a in "[a-c0-2]{0,5}", b in "[a-c0-2]{0,5}", c in "[a-c0-2]{0,5}") {
        prop_assert_eq!(natural_order(&a, &b), natural_order(&b, &a).reverse());
        prop_assert_eq!(natural_order(&a, &b) == Ordering::Equal, a == b);
        if natural_order(&a, &b).is_le() && natural_order(&b, &c).is_le() {
            prop_assert!(natural_order(&a, &c).is_le());
        }
    }

    #[test]
    fn numbers_compare_numerically(a in 0_u64..1_000_000, b in 0_u64..1_000_000) {
        prop_assert_eq!(natural_order(&format!("w-{a}-x"), &format!("w-{b}-x")), a.cmp(&b));
    }

    #[test]
    fn the_order_of_the_pod_list_does_not_matter(roles in any_roles(), assembly in any_assembly(), seed: u64) {
        let mut shuffled = roles.clone();
        for pods in shuffled.iter_mut().flatten() {
            // The names in a list are not unique, which cannot happen in a cluster.
            pods.sort_by_key(|pod| pod.metadata.name.clone());
            pods.dedup_by_key(|pod| (pod.metadata.namespace.clone(), pod.metadata.name.clone()));
        }
        let roles = shuffled.clone();
        for pods in shuffled.iter_mut().flatten() {
            let middle = usize::try_from(seed).unwrap_or(1) % pods.len().max(1);
            pods.rotate_left(middle);
            if seed % 2 == 0 {
                pods.reverse();
            }
        }
        let (first, second) = (assemble(&selected(&roles), &assembly), assemble(&selected(&shuffled), &assembly));
        prop_assert_eq!(first.is_ok(), second.is_ok());
        if let (Ok(first), Ok(second)) = (first, second) {
            prop_assert_eq!(first, second);
        }
    }

    #[test]
    fn indices_are_consecutive_and_tasks_are_unique(roles in any_roles(), assembly in any_assembly()) {
        let Ok(tasks) = assemble(&selected(&roles), &assembly) else {
            return Ok(());
        };
        // A pod that several selectors select may be a task for each.
        if assembly.policy.doubled != Doubled::Each {
            let pods: BTreeSet<_> = tasks.iter().map(|task| (&task.pod.namespace, &task.pod.name)).collect();
            prop_assert_eq!(pods.len(), tasks.len());
        }
        let places: BTreeSet<_> = tasks.iter().map(|task| (&task.role, task.index)).collect();
        prop_assert_eq!(places.len(), tasks.len());
        let spec = tasks.spec();
        prop_assert_eq!(spec.jobs().count(), roles.len().min(ROLES.len()));
        for role in spec.jobs() {
            let by_index = match assembly.order {
                Order::Lexical => false,
                Order::CompletionIndex => true,
                Order::Natural => tasks.of_role(role).all(|task| {
                    let all = roles.iter().flatten().flatten();
                    let mut own = all.filter(|pod| (pod.metadata.namespace(), &pod.metadata.name) == (task.pod.namespace.as_str(), &task.pod.name));
                    own.any(|pod| pod.completion_index().is_some())
                }),
            };
            if !by_index {
                let dense: Vec<u32> = (0..).take(spec.num_tasks(role).unwrap()).collect();
                prop_assert_eq!(spec.task_indices(role).unwrap(), dense);
            }
        }
    }
}
