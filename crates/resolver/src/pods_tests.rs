//! Test vectors: TensorFlow's own, and what it gets wrong.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

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

fn workers(selectors: Vec<Vec<PodFacts>>) -> Vec<Selected> {
    vec![("worker".to_owned(), selectors)]
}

fn dict(roles: &[Selected], how: &Assembly) -> Value {
    assemble(roles, how).unwrap().as_dict()
}

#[test]
fn pods_are_sorted_by_name() {
    let pods = vec![
        running("tensorflow-abc123", "10.1.2.3"),
        running("tensorflow-def456", "10.1.2.4"),
        running("tensorflow-999999", "10.1.2.5"),
    ];
    let expected = json!({"worker": ["10.1.2.5:8470", "10.1.2.3:8470", "10.1.2.4:8470"]});
    let lexical = Assembly {
        order: Order::Lexical,
        ..Assembly::default()
    };
    assert_eq!(dict(&workers(vec![pods.clone()]), &lexical), expected);
    assert_eq!(dict(&workers(vec![pods]), &Assembly::default()), expected);
}

#[test]
fn selectors_keep_their_order() {
    let roles = workers(vec![
        vec![running("z", "1.1.1.1")],
        vec![running("a", "2.2.2.2")],
    ]);
    assert_eq!(
        dict(&roles, &Assembly::default()),
        json!({"worker": ["1.1.1.1:8470", "2.2.2.2:8470"]})
    );
}

#[test]
fn a_pod_that_does_not_run_is_refused_in_tensorflows_words() {
    let roles = workers(vec![vec![in_phase(
        "tensorflow-abc123",
        "10.1.2.3",
        "Failed",
    )]]);
    assert_eq!(
        assemble(&roles, &Assembly::default())
            .unwrap_err()
            .to_string(),
        "Pod \"tensorflow-abc123\" is not running; phase: \"Failed\""
    );
}

#[test]
fn policies_leave_out_what_they_say() {
    let roles = |phase| {
        workers(vec![vec![
            running("a", "1.1.1.1"),
            in_phase("b", "2.2.2.2", phase),
        ]])
    };
    let skip = |policy| Assembly {
        policy,
        ..Assembly::default()
    };
    let one = json!({"worker": ["1.1.1.1:8470"]});
    assert_eq!(dict(&roles("Succeeded"), &skip(Policy::SkipFinished)), one);
    assert!(assemble(&roles("Pending"), &skip(Policy::SkipFinished)).is_err());
    assert_eq!(dict(&roles("Pending"), &skip(Policy::SkipNotRunning)), one);
    let mut going = running("b", "2.2.2.2");
    going.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH);
    let roles = workers(vec![vec![running("a", "1.1.1.1"), going]]);
    assert_eq!(dict(&roles, &skip(Policy::SkipNotRunning)), one);
}

#[test]
fn numbers_sort_as_numbers_and_indices_win() {
    let pods = || vec![running("w-10", "10.0.0.10"), running("w-2", "10.0.0.2")];
    let natural = dict(&workers(vec![pods()]), &Assembly::default());
    assert_eq!(
        natural,
        json!({"worker": ["10.0.0.2:8470", "10.0.0.10:8470"]})
    );
    let lexical = Assembly {
        order: Order::Lexical,
        ..Assembly::default()
    };
    assert_eq!(
        dict(&workers(vec![pods()]), &lexical),
        json!({"worker": ["10.0.0.10:8470", "10.0.0.2:8470"]})
    );
    let roles = workers(vec![vec![indexed("a-x", 3), indexed("b-y", 0)]]);
    assert_eq!(
        dict(&roles, &Assembly::default()),
        json!({"worker": {"0": "10.0.0.0:8470", "3": "10.0.0.3:8470"}})
    );
    let twice = workers(vec![vec![indexed("a", 3), indexed("b", 3)]]);
    assert!(
        assemble(&twice, &Assembly::default())
            .unwrap_err()
            .to_string()
            .contains("both have completion index 3")
    );
}

#[test]
fn a_pod_of_two_selectors_is_refused_or_counted_once() {
    let roles = workers(vec![
        vec![running("a", "1.1.1.1")],
        vec![running("a", "1.1.1.1")],
    ]);
    let error = assemble(&roles, &Assembly::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("Pod \"a\" is matched by two selectors"),
        "{error}"
    );
    let once = Assembly {
        deduplicate: true,
        ..Assembly::default()
    };
    assert_eq!(dict(&roles, &once), json!({"worker": ["1.1.1.1:8470"]}));
}

#[test]
fn addresses_of_every_kind() {
    let named = pod(json!({
        "metadata": {"name": "run-worker-0-x7k2p", "namespace": "team"},
        "spec": {"hostname": "run-worker-0", "subdomain": "run"},
        "status": {"phase": "Running", "podIP": "fd00::1", "hostIP": "192.168.0.1"},
    }));
    let with = |address| {
        let how = Assembly {
            address,
            port: 1,
            ..Assembly::default()
        };
        assemble(&workers(vec![vec![named.clone()]]), &how)
            .unwrap()
            .task_address("worker", 0)
            .unwrap()
            .to_owned()
    };
    assert_eq!(with(Address::PodIp), "[fd00::1]:1");
    assert_eq!(with(Address::HostIp), "192.168.0.1:1");
    assert_eq!(with(Address::Dns), "run-worker-0.run.team.svc:1");
    let error = assemble(&workers(vec![vec![running("a", "")]]), &Assembly::default()).unwrap_err();
    assert!(error.to_string().contains("Pod \"a\" has no status.podIP"));
}

#[test]
fn who_is_missing_is_said_with_the_reason() {
    let roles = vec![
        (
            "worker".to_owned(),
            vec![vec![
                running("w-0", "1.1.1.1"),
                in_phase("w-1", "", "Pending"),
            ]],
        ),
        ("ps".to_owned(), vec![vec![]]),
    ];
    let needed = BTreeMap::from([
        ("worker".to_owned(), 3),
        ("ps".to_owned(), 1),
        ("chief".to_owned(), 1),
    ]);
    assert_eq!(
        missing(&roles, &needed, Address::PodIp),
        [
            "chief: 0 of 1; no selector is given for this role",
            "worker: 1 of 3; w-1 is Pending, 1 not created yet",
            "ps: 0 of 1; no pod matches",
        ]
    );
    let enough = BTreeMap::from([("worker".to_owned(), 1)]);
    assert!(missing(&roles, &enough, Address::PodIp).is_empty());
}

#[test]
fn accelerators_are_added_up() {
    let pod = pod(json!({"spec": {"containers": [
        {"resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "4"}}},
        {"resources": {"limits": {"nvidia.com/gpu": 1}}},
    ]}}));
    assert_eq!(
        pod.accelerators(),
        BTreeMap::from([("nvidia.com/gpu".to_owned(), 3)])
    );
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
}
