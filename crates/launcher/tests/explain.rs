//! The table of causes: each case of `cases/explain.yaml` is a run's evidence;
//! what is told of it stands in the snapshot.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use longshore_launcher::{
    Run, RunName,
    evidence::{EventEvidence, JobEvidence, PodEvidence, WorkloadEvidence},
    explain::Around,
    fit::Nodes,
    runs::RunRole,
    why::{Evidence, Why, judge},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// One case, as written in the file. Pods, Jobs and events are what differs
/// from a plain one.
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

/// Lays a value over another, field by field.
fn lay(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                lay(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        (base, over) => *base = over.clone(),
    }
}

fn labels() -> Value {
    json!({"longshore.dev/run": "digits-x7k2p", "longshore.dev/role": "worker"})
}

fn pod(index: usize, over: &Value) -> PodEvidence {
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
    lay(&mut pod, over);
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
    lay(&mut job, &case.job);
    serde_json::from_value(job).unwrap()
}

/// Of the first pod, unless it says otherwise.
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
    lay(&mut event, over);
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
    lay(&mut workload, over);
    serde_json::from_value(workload).unwrap()
}

impl Case {
    fn tasks(&self) -> u32 {
        self.tasks.unwrap_or(1)
    }

    fn judge(&self) -> Why {
        let nodes = self.nodes.as_ref().map(|nodes| Nodes {
            seen: nodes
                .iter()
                .map(|node| serde_json::from_value(node.clone()).unwrap())
                .collect(),
            more: false,
        });
        let pods: Vec<PodEvidence> = (0..)
            .zip(&self.pods)
            .map(|(n, over)| pod(n, over))
            .collect();
        let log = self.log.clone().zip(pods.first());
        let evidence = Evidence {
            jobs: vec![job(self)],
            last_line: log.map(|(line, pod)| (pod.metadata.name.clone(), line)),
            pods,
            around: Around {
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
            ..Evidence::default()
        };
        let now = "2026-01-05T10:02:00Z".parse().unwrap();
        judge(&run(self.tasks()), &evidence, now)
    }
}

#[test]
fn the_table() {
    let cases: Vec<Case> = serde_yaml_ng::from_str(include_str!("cases/explain.yaml")).unwrap();
    let mut told = String::new();
    for case in &cases {
        let why = case.judge();
        let state = serde_json::to_value(why.state).unwrap();
        writeln!(told, "# {}", case.name).unwrap();
        writeln!(told, "{}: {}", state.as_str().unwrap(), why.summary).unwrap();
        if let Some(known) = &why.explanation {
            writeln!(told, "  kind:   {}", known.kind).unwrap();
            writeln!(told, "  remedy: {}", known.remedy).unwrap();
            writeln!(told, "  seen:   {}", known.evidence.join(" | ")).unwrap();
        }
        writeln!(told).unwrap();
    }
    insta::assert_snapshot!(told);
}

#[test]
fn as_json() {
    let cases: Vec<Case> = serde_yaml_ng::from_str(include_str!("cases/explain.yaml")).unwrap();
    let case = cases
        .iter()
        .find(|case| case.name == "out of memory")
        .unwrap();
    let why = case.judge();
    insta::assert_snapshot!(serde_json::to_string_pretty(&why).unwrap());
    // What is written on a Job can be read again.
    let text = serde_json::to_string(&why.explanation).unwrap();
    assert_eq!(
        serde_json::from_str::<Option<_>>(&text).unwrap(),
        why.explanation
    );
}
