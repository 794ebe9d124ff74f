//! `ClusterSpec` compared with TensorFlow's own.

use longshore::resolver::ClusterSpec;
use serde_json::{Value, json};

use crate::install::ask;

/// The results of Longshore's `ClusterSpec`, in the format of `cluster_spec.py`.
fn ours(value: &Value) -> Value {
    let Ok(spec) = ClusterSpec::from_value(value) else {
        return json!({"refused": true});
    };
    let of_job = |job: &str| {
        let missing = spec.task_address(job, 77).unwrap_err().to_string();
        let answers = json!({
            "num_tasks": spec.num_tasks(job).unwrap(),
            "task_indices": spec.task_indices(job).unwrap(),
            "job_tasks": spec.job_tasks(job).unwrap().collect::<Vec<_>>(),
            "addresses": spec.tasks(job).map(|(_, address)| address).collect::<Vec<_>>(),
            "missing": missing,
        });
        (job.to_owned(), answers)
    };
    let definition = spec.as_cluster_def();
    let definition = definition["job"].as_array().unwrap().iter().map(|job| {
        let tasks = job["tasks"].as_object().unwrap();
        let mut tasks: Vec<(u32, Value)> = tasks
            .iter()
            .map(|(index, address)| (index.parse().unwrap(), address.clone()))
            .collect();
        tasks.sort_by_key(|(index, _)| *index);
        json!([job["name"], tasks])
    });
    json!({
        "as_dict": spec.as_dict(),
        "jobs": spec.jobs().map(of_job).collect::<Value>(),
        "bool": !spec.is_empty(),
        "definition": definition.collect::<Value>(),
        "again": ClusterSpec::from_value(&spec.as_dict()).as_ref() == Ok(&spec),
        "no_job": spec.num_tasks("missing").unwrap_err().to_string(),
    })
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn a_spec_equals_tensorflows_spec() {
    let specs = json!([
        {},
        {"worker": ["a:1", "b:1"]},
        {"worker": ["b:1", "a:1"], "ps": ["c:1"], "chief": ["d:1"]},
        {"worker": {"0": "a:1", "1": "b:1"}},
        {"worker": {"3": "d:1", "1": "b:1"}, "ps": ["p:1"]},
        {"ps": [], "worker": ["a:1"]},
        {"worker": {}},
        {"": ["a:1"]},
        {"worker": ["[fd00::1]:2222", "", "no port"]},
    ]);
    let read = ask("tensorflow", "cluster_spec.py", &json!({"specs": specs}));
    for (spec, theirs) in specs
        .as_array()
        .unwrap()
        .iter()
        .zip(read["answers"].as_array().unwrap())
    {
        let mut theirs = theirs.clone();
        // A job without tasks is an empty list in Longshore, and an empty map in TensorFlow.
        for tasks in theirs["as_dict"].as_object_mut().unwrap().values_mut() {
            if *tasks == json!({}) {
                *tasks = json!([]);
            }
        }
        assert_eq!(ours(spec), theirs, "{spec}");
    }
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn input_that_tensorflow_rejects_is_rejected() {
    let specs = json!([
        {"worker": [1]}, {"worker": [null]}, {"worker": {"0": 7}}, {"worker": {"x": "a:1"}},
        {"worker": {"1.5": "a:1"}}, {"worker": 7}, {"worker": [["a:1"]]},
    ]);
    let read = ask("tensorflow", "cluster_spec.py", &json!({"specs": specs}));
    for (spec, theirs) in specs
        .as_array()
        .unwrap()
        .iter()
        .zip(read["answers"].as_array().unwrap())
    {
        assert!(theirs["refused"].is_string(), "{spec}: {theirs}");
        assert_eq!(ours(spec), json!({"refused": true}), "{spec}");
    }
}
