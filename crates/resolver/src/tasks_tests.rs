//! Test vectors: TensorFlow's own, and what it gets wrong.
#![allow(clippy::unwrap_used)]

use std::{cmp::Ordering, collections::BTreeSet};

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{facts::COMPLETION_INDEX, missing::missing, order::natural_order, policy::Act};

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

fn spec(selectors: &[Vec<PodFacts>], how: &Assembly) -> Result<Value, String> {
    let tasks = assemble(&[select("worker", selectors)], how);
    let tasks = tasks.map_err(|error| error.to_string())?;
    Ok(tasks.spec().as_dict())
}

fn dict(selectors: &[Vec<PodFacts>], how: &Assembly) -> Value {
    spec(selectors, how).unwrap()
}

fn refusal(selectors: &[Vec<PodFacts>], how: &Assembly) -> String {
    spec(selectors, how).unwrap_err()
}

fn ordered(order: Order) -> Assembly {
    Assembly {
        order,
        ..Assembly::default()
    }
}

fn by(policy: Policy) -> Assembly {
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
fn a_pod_that_does_not_run_is_refused_in_tensorflows_words() {
    let pods = [vec![in_phase("tensorflow-abc123", "10.1.2.3", "Failed")]];
    for how in [Assembly::default(), Assembly::tensorflow()] {
        assert_eq!(
            refusal(&pods, &how),
            "Pod \"tensorflow-abc123\" is not running; phase: \"Failed\""
        );
    }
}

/// A pod in each state, all running pods with an address.
fn in_every_state() -> [(&'static str, PodFacts); 6] {
    let ready = |name| {
        let mut pod = running(name, "1.1.1.1");
        let condition = json!([{"type": "Ready", "status": "True"}]);
        pod.status.conditions = serde_json::from_value(condition).unwrap();
        pod
    };
    let mut going = ready("going");
    going.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH);
    let mut gone = in_phase("gone", "1.1.1.1", "Failed");
    gone.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH);
    [
        ("ready", ready("ready")),
        ("unready", running("unready", "1.1.1.1")),
        ("pending", in_phase("pending", "1.1.1.1", "Pending")),
        ("finished", in_phase("finished", "1.1.1.1", "Succeeded")),
        ("going", going),
        ("gone", gone),
    ]
}

#[test]
fn policies_refuse_skip_and_keep_what_they_say() {
    let planned = Policy {
        pending: Act::Keep,
        finished: Act::Skip,
        terminating: Act::Skip,
        unready: Act::Refuse,
        ..Policy::default()
    };
    // In the order of the states: + kept, - skipped, ! refused.
    for (policy, acts) in [
        (Policy::default(), "++!!!!"),
        (Policy::tensorflow(), "++!!+!"),
        (Policy::skip_finished(), "++!---"),
        (Policy::running(), "++----"),
        (Policy::ready(), "+-----"),
        (planned, "+!+---"),
    ] {
        let told: String = in_every_state()
            .map(|(_, pod)| match spec(&[vec![pod]], &by(policy)) {
                Err(_) => '!',
                Ok(spec) if spec == json!({"worker": []}) => '-',
                Ok(_) => '+',
            })
            .iter()
            .collect();
        assert_eq!(told, acts, "{policy:?}");
    }
}

#[test]
fn refusals_name_the_pod_and_what_it_does() {
    let [_, (_, unready), (_, pending), _, (_, going), _] = in_every_state();
    let strict = by(Policy {
        unready: Act::Refuse,
        ..Policy::default()
    });
    assert_eq!(
        refusal(&[vec![unready]], &strict),
        "Pod \"unready\" is running and not ready; wait for it, or do without readiness"
    );
    assert_eq!(
        refusal(&[vec![pending]], &strict),
        "Pod \"pending\" is not running; phase: \"Pending\""
    );
    assert_eq!(
        refusal(&[vec![going]], &strict),
        "Pod \"going\" is being deleted; wait until it is gone, or leave out pods that end"
    );
}

#[test]
fn numbers_sort_as_numbers_and_indices_win() {
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
        refusal(&pods, &ordered(Order::CompletionIndex)),
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
fn several_jobs_with_indices_are_one_role() {
    let pods = [
        vec![indexed("late-1", 1), indexed("late-0", 0)],
        vec![indexed("early-0", 0), indexed("early-1", 1)],
    ];
    assert_eq!(
        dict(&pods, &Assembly::default()),
        json!({"worker": ["10.0.0.0:8470", "10.0.0.1:8470", "10.0.0.0:8470", "10.0.0.1:8470"]})
    );
    let told = refusal(&pods, &ordered(Order::CompletionIndex));
    assert_eq!(
        told,
        "Pods \"late-0\" and \"early-0\" both have completion index 0 in role \"worker\"; select the pods of one Job only"
    );
}

#[test]
fn a_pod_of_two_selectors_is_refused_or_counted_once() {
    let pods = [vec![running("a", "1.1.1.1")], vec![running("a", "1.1.1.1")]];
    assert_eq!(
        refusal(&pods, &Assembly::default()),
        "Pod \"a\" is matched by two selectors, of role \"worker\" and role \"worker\"; make the selectors disjoint, or count each pod once"
    );
    let once = by(Policy {
        doubled: Doubled::First,
        ..Policy::default()
    });
    assert_eq!(dict(&pods, &once), json!({"worker": ["1.1.1.1:8470"]}));
}

#[test]
fn one_name_in_two_namespaces_is_two_pods() {
    let mut other = running("a", "2.2.2.2");
    other.metadata.namespace = "another".to_owned();
    let pods = [vec![running("a", "1.1.1.1"), other]];
    assert_eq!(
        dict(&pods, &Assembly::default()),
        json!({"worker": ["2.2.2.2:8470", "1.1.1.1:8470"]})
    );
}

fn at(pod: &PodFacts, address: Address, family: Family, port: Port) -> Result<String, String> {
    let how = Assembly {
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
        &how,
    );
    let tasks = tasks.map_err(|error| error.to_string())?;
    Ok(tasks.get("worker", 0).unwrap().address.clone())
}

#[test]
fn addresses_of_every_kind() {
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
fn ports_by_number_and_by_name() {
    let mut pod = running("a", "1.1.1.1");
    pod.spec.containers = serde_json::from_value(json!([
        {"ports": [{"containerPort": 80}]},
        {"ports": [{"name": "grpc", "containerPort": 2222, "hostPort": 32222}]},
    ]))
    .unwrap();
    let named = |name: &str| Port::Named(name.to_owned());
    let with = |address, port| at(&pod, address, Family::Primary, port);
    assert_eq!(with(Address::PodIp, named("grpc")).unwrap(), "1.1.1.1:2222");
    // The node's address leads to the node's port.
    assert_eq!(
        with(Address::HostIp, named("grpc")).unwrap(),
        "192.168.0.1:32222"
    );
    assert_eq!(
        with(Address::PodIp, named("http")).unwrap_err(),
        "Pod \"a\" has no port named \"http\"; it has grpc"
    );
    pod.spec.containers.clear();
    assert_eq!(
        at(&pod, Address::PodIp, Family::Primary, named("http")).unwrap_err(),
        "Pod \"a\" has no port named \"http\"; its containers name none: give the number"
    );
}

#[test]
fn who_is_missing_is_said_with_the_reason() {
    let mut unplaced = in_phase("w-2", "", "Pending");
    unplaced.status = serde_json::from_value(json!({"phase": "Pending", "conditions": [{
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
        unplaced,
        unpulled,
        running("w-4", ""),
    ]];
    let none = [vec![]];
    let roles = [select("worker", &workers), select("ps", &none)];
    let needed = [("worker", 7), ("ps", 1), ("chief", 1)];
    let needed = needed
        .map(|(role, number)| (role.to_owned(), number))
        .into();
    let told = missing(&roles, &needed, &Assembly::default());
    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
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
    let told = missing(
        &[select("worker", &[many])],
        &[("worker".to_owned(), 1)].into(),
        &Assembly::default(),
    );
    assert!(
        told[0].to_string().ends_with("w-9 is Pending, and 3 more"),
        "{}",
        told[0]
    );
}

#[test]
fn accelerators_are_added_up() {
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
    /// Pods of few names, so that they clash, in any state.
    fn any_pod()(
        name in "(w|ps)-[0-9]{1,2}",
        namespace in "[ab]",
        phase in prop::sample::select(vec!["Running", "Running", "Pending", "Failed", ""]),
        ip in prop::sample::select(vec!["", "10.0.0.1", "fd00::1", "no address"]),
        deleted in prop::bool::weighted(0.1),
        index in prop::option::weighted(0.5, "[0-9]{1,2}|x"),
    ) -> PodFacts {
        let mut pod = in_phase(&name, ip, phase);
        pod.metadata.namespace = namespace;
        pod.metadata.deletion_timestamp = deleted.then_some(Timestamp::UNIX_EPOCH);
        pod.metadata.labels.extend(index.map(|index| (COMPLETION_INDEX.to_owned(), index)));
        pod
    }
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let act = || prop::sample::select(vec![Act::Refuse, Act::Skip, Act::Keep]);
    let doubled = prop::sample::select(vec![Doubled::Refuse, Doubled::First]);
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
    fn natural_order_is_an_order(a in "[a-c0-2]{0,5}", b in "[a-c0-2]{0,5}", c in "[a-c0-2]{0,5}") {
        prop_assert_eq!(natural_order(&a, &b), natural_order(&b, &a).reverse());
        prop_assert_eq!(natural_order(&a, &b) == Ordering::Equal, a == b);
        if natural_order(&a, &b).is_le() && natural_order(&b, &c).is_le() {
            prop_assert!(natural_order(&a, &c).is_le());
        }
    }

    #[test]
    fn numbers_compare_as_numbers(a in 0_u64..1_000_000, b in 0_u64..1_000_000) {
        prop_assert_eq!(natural_order(&format!("w-{a}-x"), &format!("w-{b}-x")), a.cmp(&b));
    }

    #[test]
    fn the_order_of_a_list_does_not_matter(roles in any_roles(), how in any_assembly(), seed: u64) {
        let mut shuffled = roles.clone();
        for pods in shuffled.iter_mut().flatten() {
            // Names come twice in one list, too, which no cluster does.
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
        let (first, second) = (assemble(&selected(&roles), &how), assemble(&selected(&shuffled), &how));
        prop_assert_eq!(first.is_ok(), second.is_ok());
        if let (Ok(first), Ok(second)) = (first, second) {
            prop_assert_eq!(first, second);
        }
    }

    #[test]
    fn tasks_are_dense_and_none_is_there_twice(roles in any_roles(), how in any_assembly()) {
        let Ok(tasks) = assemble(&selected(&roles), &how) else {
            return Ok(());
        };
        let pods: BTreeSet<_> = tasks.iter().map(|task| (&task.pod.namespace, &task.pod.name)).collect();
        prop_assert_eq!(pods.len(), tasks.len());
        let places: BTreeSet<_> = tasks.iter().map(|task| (&task.role, task.index)).collect();
        prop_assert_eq!(places.len(), tasks.len());
        let spec = tasks.spec();
        prop_assert_eq!(spec.jobs().count(), roles.len().min(ROLES.len()));
        for role in spec.jobs() {
            let by_index = match how.order {
                Order::Lexical => false,
                Order::CompletionIndex => true,
                Order::Natural => tasks.of_role(role).all(|task| {
                    let all = roles.iter().flatten().flatten();
                    let mut own = all.filter(|pod| (&pod.metadata.namespace, &pod.metadata.name) == (&task.pod.namespace, &task.pod.name));
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
