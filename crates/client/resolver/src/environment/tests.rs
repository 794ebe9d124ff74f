//! Tests of the variables of other launchers.

#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::{hostlist::*, *};
use crate::{ClusterSpec, render};

fn variables<'a>(all: &[(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + use<'a> {
    let all: BTreeMap<&str, &str> = all.iter().copied().collect();
    move |name| all.get(name).map(ToString::to_string)
}

#[test]
fn lists_of_hosts_are_expanded_as_slurm_does() {
    for (text, expected) in [
        ("login1", &["login1"][..]),
        ("n[1-3]", &["n1", "n2", "n3"]),
        ("n[08-10],m7", &["n08", "n09", "n10", "m7"]),
        ("n[1,3-4],x", &["n1", "n3", "n4", "x"]),
        ("r[1-2]n[01-02]", &["r1n01", "r1n02", "r2n01", "r2n02"]),
        ("n[1-2].example.com", &["n1.example.com", "n2.example.com"]),
    ] {
        assert_eq!(hosts(text).unwrap(), expected, "{text}");
    }
    for wrong in [
        "",
        ",",
        "a,,b",
        "a[",
        "a]",
        "a[[1]]",
        "a[1",
        "a[]",
        "a[x]",
        "a[2-1]",
        "a[1-]",
        "a[-1]",
        "a[1-99999999999999999999]",
        "a[0-65536]",
        "a[1-60000],b[1-60000]",
        "a[1-300][1-300]",
    ] {
        assert!(hosts(wrong).is_err(), "{wrong}");
    }
    assert_eq!(tasks_per_node("2(x3),1").unwrap(), [2, 2, 2, 1]);
    for wrong in ["", "x", "2(x", "2(x)", "2(y3)", "-1", "1(x9999999999)"] {
        assert!(tasks_per_node(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn roles_share_the_ranks_of_a_job_step() {
    let step = [
        ("SLURM_STEP_NODELIST", "gpu[1-2],ps9"),
        ("SLURM_STEP_TASKS_PER_NODE", "2(x2),1"),
        ("SLURM_STEP_NUM_TASKS", "5"),
        ("SLURM_PROCID", "4"),
    ];
    let options = SlurmOptions {
        jobs: vec![("worker".to_owned(), 4), ("ps".to_owned(), 1)],
        ..SlurmOptions::default()
    };
    let described = slurm(variables(&step), &options).unwrap();
    assert_eq!(
        described.spec.as_dict(),
        json!({"worker": ["gpu1:8888", "gpu1:8889", "gpu2:8888", "gpu2:8889"], "ps": ["ps9:8888"]})
    );
    assert_eq!(described.task, Some(("ps".to_owned(), 0)));

    let too_many = SlurmOptions {
        jobs: vec![("worker".to_owned(), 6)],
        ..SlurmOptions::default()
    };
    let error = slurm(variables(&step), &too_many).unwrap_err().to_string();
    assert!(
        error.contains("the roles have 6 tasks, the job step has 5"),
        "{error}"
    );
    let ports = SlurmOptions {
        port: 65535,
        ..SlurmOptions::default()
    };
    let error = slurm(variables(&step), &ports).unwrap_err().to_string();
    assert!(error.contains("choose a lower first port"), "{error}");
    for missing in 0..step.len() {
        let rest: Vec<_> = step
            .iter()
            .copied()
            .enumerate()
            .filter(|(n, _)| *n != missing)
            .map(|(_, one)| one)
            .collect();
        let error = slurm(variables(&rest), &SlurmOptions::default()).unwrap_err();
        assert!(matches!(error, EnvironmentError::Missing { name, .. } if name == step[missing].0));
    }
    let mut high = step;
    high[3].1 = "5";
    assert!(slurm(variables(&high), &SlurmOptions::default()).is_err());
}

#[test]
fn tf_config_has_optional_parts() {
    assert_eq!(tf_config("").unwrap(), Described::default());
    assert_eq!(tf_config("{}").unwrap(), Described::default());
    let text = r#"{"cluster": {"ps": {"1": "c:1"}}, "task": {"type": "ps", "index": "1"}, "rpc_layer": "http", "session_master": "sup", "environment": "google"}"#;
    let described = tf_config(text).unwrap();
    assert_eq!(described.spec.task_address("ps", 1), Ok("c:1"));
    assert_eq!(described.task, Some(("ps".to_owned(), 1)));
    assert_eq!(described.rpc_layer.as_deref(), Some("http"));
    assert_eq!(described.session_master.as_deref(), Some("sup"));
    assert_eq!(described.environment, "google");
    for (wrong, problem) in [
        ("[", "TF_CONFIG is invalid"),
        (r#"{"cluster": 3}"#, "the cluster of TF_CONFIG is invalid"),
        (
            r#"{"cluster": {"w": [7]}}"#,
            "Task address must be a string",
        ),
        (
            r#"{"task": {"type": "w", "index": "x"}}"#,
            "must be a number",
        ),
    ] {
        let error = tf_config(wrong).unwrap_err().to_string();
        assert!(error.contains(problem), "{wrong}: {error}");
    }
}

#[test]
fn sagemaker_needs_its_own_host_in_the_list() {
    let all = [("SM_HOSTS", r#"["algo-1"]"#), ("SM_CURRENT_HOST", "algo-2")];
    let error = sagemaker(variables(&all), SAGEMAKER_PORT)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("\"algo-2\" is not one of SM_HOSTS: algo-1"),
        "{error}"
    );
    assert!(sagemaker(variables(&[("SM_HOSTS", "x"), ("SM_CURRENT_HOST", "a")]), 1).is_err());
}

proptest! {
    #[test]
    fn a_written_tf_config_is_read_again(workers in 1_u32..5, chiefs in 0_u32..2, index in 0_u32..5) {
        let mut spec = ClusterSpec::new();
        for n in 0..workers {
            spec.push("worker", format!("w{n}:1"));
        }
        for n in 0..chiefs {
            spec.push("chief", format!("c{n}:1"));
        }
        let index = index % workers;
        let text = render::tf_config(&spec, "worker", index).to_string();
        let described = tf_config(&text).unwrap();
        prop_assert_eq!(described.spec, spec);
        prop_assert_eq!(described.task, Some(("worker".to_owned(), index)));
    }

    #[test]
    fn any_text_is_a_list_of_hosts_or_an_error(text in "[a-c0-9\\[\\],x()-]{0,20}") {
        let _ = hosts(&text);
        let _ = tasks_per_node(&text);
        let _ = tf_config(&text);
    }

    #[test]
    fn a_range_has_each_number_once(from in 0_usize..500, count in 0_usize..50, width in 1_usize..5) {
        let to = from + count;
        let text = format!("n[{from:0width$}-{to:0width$}]");
        let expanded = hosts(&text).unwrap();
        prop_assert_eq!(expanded.len(), count + 1);
        let read: Vec<usize> = expanded.iter().map(|host| host[1..].parse().unwrap()).collect();
        prop_assert!(read.into_iter().eq(from..=to));
    }
}
