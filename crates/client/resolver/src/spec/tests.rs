//! Compares `ClusterSpec` with the behaviour of TensorFlow's class.
#![allow(clippy::unwrap_used)]
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn spec(value: Value) -> ClusterSpec {
    ClusterSpec::from_value(&value).unwrap()
}

#[test]
fn lists_and_dense_maps_are_equal() {
    let list = spec(json!({"worker": ["a", "b"]}));
    let map = spec(json!({"worker": {"0": "a", "1": "b"}}));
    assert_eq!(list, map);
    assert_eq!(map.as_dict(), json!({"worker": ["a", "b"]}));
    assert_ne!(list, spec(json!({"worker": ["b", "a"]})));
    assert_ne!(list, spec(json!({"worker": ["a", "b"], "ps": []})));
}

#[test]
fn jobs_with_missing_indices_keep_their_indices() {
    let spec = spec(json!({"worker": {"3": "d", "1": "b"}}));
    assert_eq!(spec.num_tasks("worker"), Ok(2));
    assert_eq!(spec.task_indices("worker"), Ok(vec![1, 3]));
    let tasks = spec.job_tasks("worker").unwrap();
    assert!(tasks.eq([None, Some("b"), None, Some("d")]));
    assert_eq!(
        spec.as_cluster_def(),
        json!({"job": [{"name": "worker", "tasks": {"1": "b", "3": "d"}}]})
    );
}

#[test]
fn error_messages_are_those_of_tensorflow() {
    let spec = spec(json!({"worker": ["a"]}));
    let message = |error: SpecError| error.to_string();
    assert_eq!(
        message(spec.num_tasks("x").unwrap_err()),
        "No such job in cluster: 'x'"
    );
    assert_eq!(
        message(spec.task_address("worker", 3).unwrap_err()),
        "No task with index 3 in job 'worker'"
    );
}

#[test]
fn errors_name_the_invalid_value() {
    let error = |value: Value| ClusterSpec::from_value(&value).unwrap_err().to_string();
    assert!(error(json!({"worker": ["a", 7]})).contains("task 1 of job 'worker' has 7"));
    assert!(error(json!({"worker": {"-1": "a"}})).contains("job 'worker' has a task -1"));
    assert!(error(json!({"worker": {"1.5": "a"}})).contains("1.5"));
    assert!(error(json!({"worker": "a"})).contains("\"a\""));
    assert!(error(json!(["a"])).contains("map from job name"));
}

#[test]
fn a_spec_with_empty_jobs_is_not_empty() {
    assert!(ClusterSpec::new().is_empty());
    let spec = spec(json!({"ps": []}));
    assert!(!spec.is_empty());
    assert_eq!(spec.as_dict(), json!({"ps": []}));
    assert_eq!(spec.job_tasks("ps").unwrap().count(), 0);
}

proptest! {
    #[test]
    fn the_dict_round_trips(
        jobs in proptest::collection::btree_map(
            "[a-z]{1,8}",
            proptest::collection::btree_map(0_u32..50, "[a-z0-9.:]{1,12}", 0..6),
            0..4,
        )
    ) {
        let mut spec = ClusterSpec::new();
        for (job, tasks) in jobs {
            spec.add_job(&job);
            for (index, address) in tasks {
                spec.set(&job, index, address);
            }
        }
        prop_assert_eq!(ClusterSpec::from_value(&spec.as_dict()).unwrap(), spec);
    }
}

#[test]
fn only_the_canonical_form_of_an_index_is_accepted() {
    for invalid in ["01", "+1", " 1", "1.0", "4294967296", ""] {
        let error = ClusterSpec::from_value(&json!({"worker": {invalid: "a"}})).unwrap_err();
        assert!(matches!(error, SpecError::Index { .. }), "{invalid:?}");
    }
}

#[test]
fn serde_round_trips_in_json_and_yaml() {
    let text = r#"{"ps":{"1":"c:1"},"worker":["a:1","b:1"]}"#;
    let read: ClusterSpec = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    let yaml = "worker: [a:1, b:1]\nps:\n  1: c:1\n";
    assert_eq!(serde_yaml_ng::from_str::<ClusterSpec>(yaml).unwrap(), read);
    let error = |text: &str| {
        let read = serde_yaml_ng::from_str::<ClusterSpec>(text);
        read.unwrap_err().to_string()
    };
    assert!(error("worker: {-1: a}").contains("job 'worker' has a task -1"));
    assert!(error("worker: {1.5: a}").contains("job 'worker' has a task 1.5"));
    assert!(error("worker: [a, 7]").contains("task 1 of job 'worker' has 7"));
    assert!(error("worker: a").contains("list of addresses or a map"));
    assert!(serde_json::from_str::<ClusterSpec>("[1]").is_err());
}
