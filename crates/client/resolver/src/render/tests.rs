//! Renders one job in every format.
#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn spec(value: &Value) -> ClusterSpec {
    ClusterSpec::from_value(value).unwrap()
}

#[test]
fn the_cluster_contains_chief_and_workers() {
    let spec = spec(&json!({
        "chief": ["c:1"], "worker": ["a:1", "b:1"], "ps": ["p:1"], "evaluator": ["e:1"],
    }));
    assert_eq!(
        tf_config(&spec, "worker", 1),
        json!({
            "cluster": {"chief": ["c:1"], "worker": ["a:1", "b:1"], "ps": ["p:1"]},
            "task": {"type": "worker", "index": 1},
        })
    );
    assert_eq!(leader(&spec), Some(("chief", 0)));
    assert_eq!(
        tf_config(&spec, "evaluator", 0)["cluster"]["evaluator"],
        json!(["e:1"])
    );
}

#[test]
fn tf_config_omits_roles_without_tasks() {
    let spec = spec(&json!({"worker": ["a:1"], "ps": []}));
    assert_eq!(
        tf_config(&spec, "worker", 0)["cluster"],
        json!({"worker": ["a:1"]})
    );
}

#[test]
fn ray_variables_require_a_head() {
    let has = |roles: &Value, role| {
        let variables = Job::new(spec(roles)).variables(role, 0).unwrap();
        variables.iter().any(|(name, _)| *name == "RAY_ADDRESS")
    };
    assert!(has(&json!({"head": ["h:1"], "worker": ["a:1"]}), "worker"));
    assert!(!has(&json!({"worker": ["a:1"]}), "worker"));
}

#[test]
fn worker_zero_leads_if_there_is_no_chief() {
    let two = spec(&json!({"ps": ["p:1"], "worker": ["a:1"]}));
    assert_eq!(leader(&two), Some(("worker", 0)));
    let sparse = spec(&json!({"node": {"2": "p:1"}}));
    assert_eq!(leader(&sparse), Some(("node", 2)));
    assert_eq!(leader(&ClusterSpec::new()), None);
}

#[test]
fn every_format_renders_one_job() {
    let job = Job::new(spec(&json!({
        "trainer": {"1": "[fd00::1]:29500", "4": "10.0.0.4:29500"}, "master": ["10.0.0.9:29500"],
    })))
    .with_slots("trainer", 4, 8)
    .with_slots("trainer", 1, 0);
    let texts = Format::ALL.map(|(format, name)| {
        let task = format.is_of_a_task().then_some(("trainer", 4));
        format!("--- {name}\n{}", job.render(format, task).unwrap())
    });
    insta::assert_snapshot!(texts.concat());
}

#[test]
fn errors_suggest_a_fix() {
    let job = Job::new(spec(&json!({"worker": ["a:1"]})));
    let error = |outcome: Result<String, RenderError>| outcome.unwrap_err().to_string();
    assert_eq!(
        error(job.render(Format::Torch, None)),
        "the format torch describes a single task: specify the task, for example worker:0"
    );
    for (format, name) in Format::ALL
        .into_iter()
        .filter(|(format, _)| format.is_of_a_task())
    {
        assert_eq!(
            error(job.render(format, Some(("worker", 3)))),
            "No task with index 3 in job 'worker'",
            "{name}"
        );
        assert_eq!(
            error(job.render(format, Some(("ps", 0)))),
            "No such job in cluster: 'ps'",
            "{name}"
        );
    }
    assert_eq!(
        error(Job::default().render(Format::Ray, None)),
        "the job has no tasks: wait until its pods are running"
    );
    assert!(
        "hosts"
            .parse::<Format>()
            .unwrap_err()
            .to_string()
            .contains("tf-config, torch")
    );
}

#[test]
fn tasks_on_one_host_share_a_hostfile_line() {
    let job = Job::new(spec(&json!({"worker": ["a:1", "b:1", "a:2"]})));
    assert_eq!(hostfile(&job), "a slots=2\nb slots=1\n");
}
