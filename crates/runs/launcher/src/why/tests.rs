//! The table of causes: each case of `cases.yaml` is the evidence of a run, and the snapshot
//! contains its explanation.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use longshore_diagnosis::{
    evidence::{EventEvidence, JobEvidence, WorkloadEvidence},
    explain::ClusterEvidence,
    fit::Nodes,
    names::RunName,
    role::RunRole,
};
use longshore_model::facts::PodFacts;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{RunEvidence, Why, diagnose};
use crate::run::Run;

/// A case of the file. Pods, Jobs and events contain only the differences from defaults.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    tasks: Option<u32>,
    #[serde(default)]
    pods: Vec<Value>,
    #[serde(default)]
    job: Value,
    #[serde(default)]
    events: Vec<Value>,
    #[serde(default)]
    nodes: Option<Vec<Value>>,
    #[serde(default)]
    quotas: Option<Value>,
    #[serde(default)]
    workload: Option<Value>,
    #[serde(default)]
    log: Option<String>,
}

fn run(tasks: u32) -> Run {
    Run {
        name: RunName::existing("digits-x7k2p").unwrap(),
        namespace: "team".into(),
        schedule: None,
        roles: vec![RunRole {
            name: "worker".into(),
            count: tasks,
            service: false,
        }],
    }
}

/// Merges a value into another, field by field.
fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        (base, over) => *base = over.clone(),
    }
}

fn labels() -> Value {
    json!({"longshore.dev/run": "digits-x7k2p", "longshore.dev/role": "worker"})
}

fn pod(index: usize, over: &Value) -> PodFacts {
    let mut pod = json!({
        "metadata": {
            "name": format!("digits-x7k2p-worker-{index}-abcde"),
            "uid": format!("pod-{index}"),
            "labels": labels(),
            "annotations": {"batch.kubernetes.io/job-completion-index": index.to_string()},
            "creationTimestamp": "2026-01-05T10:00:00Z",
        },
        "spec": {
            "initContainers": [{"name": "fetch", "image": "trainer:1"}],
            "containers": [{
                "name": "main", "image": "trainer:1",
                "command": ["longshore", "bootstrap", "exec", "--", "python", "train.py"],
            }],
        },
        "status": {"phase": "Pending"},
    });
    merge(&mut pod, over);
    serde_json::from_value(pod).unwrap()
}

fn job(case: &Case) -> JobEvidence {
    let mut job = json!({
        "metadata": {
            "name": "digits-x7k2p-worker", "uid": "job", "labels": labels(),
            "creationTimestamp": "2026-01-05T10:00:00Z",
        },
        "spec": {"completions": case.tasks(), "parallelism": case.tasks(), "backoffLimit": 0},
        "status": {"active": case.pods.len()},
    });
    merge(&mut job, &case.job);
    serde_json::from_value(job).unwrap()
}

/// An event about the first pod, unless it names another object.
fn event(n: usize, over: &Value) -> EventEvidence {
    let mut event = json!({
        "type": "Warning",
        "involvedObject": {"kind": "Pod", "name": "digits-x7k2p-worker-0-abcde", "uid": "pod-0"},
        "lastTimestamp": format!("2026-01-05T10:01:{n:02}Z"),
    });
    if over["on"] == "job" {
        event["involvedObject"] =
            json!({"kind": "Job", "name": "digits-x7k2p-worker", "uid": "job"});
    }
    merge(&mut event, over);
    serde_json::from_value(event).unwrap()
}

fn workload(over: &Value) -> WorkloadEvidence {
    let mut workload = json!({
        "metadata": {
            "name": "job-digits-x7k2p-worker-a1b2c",
            "ownerReferences": [{
                "kind": "Job", "name": "digits-x7k2p-worker", "uid": "job", "controller": true,
            }],
        },
    });
    merge(&mut workload, over);
    serde_json::from_value(workload).unwrap()
}

impl Case {
    fn tasks(&self) -> u32 {
        self.tasks.unwrap_or(1)
    }

    fn explain(&self) -> Why {
        let nodes = self.nodes.as_ref().map(|nodes| Nodes {
            seen: nodes
                .iter()
                .map(|node| serde_json::from_value(node.clone()).unwrap())
                .collect(),
            more: false,
        });
        let pods: Vec<PodFacts> = (0..)
            .zip(&self.pods)
            .map(|(n, over)| pod(n, over))
            .collect();
        let log = self.log.clone().zip(pods.first());
        let evidence = RunEvidence {
            jobs: vec![job(self)],
            last_line: log.map(|(line, pod)| (pod.metadata.name.clone(), line)),
            pods,
            cluster: ClusterEvidence {
                events: (0..)
                    .zip(&self.events)
                    .map(|(n, over)| event(n, over))
                    .collect(),
                nodes,
                quotas: self
                    .quotas
                    .clone()
                    .map(|quotas| serde_json::from_value(quotas).unwrap()),
                workloads: self.workload.iter().map(workload).collect(),
            },
            ..RunEvidence::default()
        };
        let now = "2026-01-05T10:02:00Z".parse().unwrap();
        diagnose(&run(self.tasks()), &evidence, now)
    }
}

#[test]
fn the_table() {
    let cases: Vec<Case> = serde_yaml_ng::from_str(include_str!("cases.yaml")).unwrap();
    let mut table = String::new();
    for case in &cases {
        let why = case.explain();
        let state = serde_json::to_value(why.state).unwrap();
        writeln!(table, "# {}", case.name).unwrap();
        writeln!(table, "{}: {}", state.as_str().unwrap(), why.summary).unwrap();
        if let Some(known) = &why.explanation {
            writeln!(table, "  kind:   {}", known.kind).unwrap();
            writeln!(table, "  remedy: {}", known.remedy).unwrap();
            writeln!(table, "  seen:   {}", known.evidence.join(" | ")).unwrap();
        }
        writeln!(table).unwrap();
    }
    insta::assert_snapshot!(table);
}

#[test]
fn as_json() {
    let cases: Vec<Case> = serde_yaml_ng::from_str(include_str!("cases.yaml")).unwrap();
    let case = cases
        .iter()
        .find(|case| case.name == "out of memory")
        .unwrap();
    let why = case.explain();
    insta::assert_snapshot!(serde_json::to_string_pretty(&why).unwrap());
    // The explanation stored on a Job can be parsed again.
    let text = serde_json::to_string(&why.explanation).unwrap();
    assert_eq!(
        serde_json::from_str::<Option<_>>(&text).unwrap(),
        why.explanation
    );
}
