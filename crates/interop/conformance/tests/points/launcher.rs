//! The launcher's preflight and explanations, on embedded and real servers. These servers have no
//! controllers and no nodes: the tests write the status that controllers and nodes would write.

use longshore::{
    client::{
        Cluster, Patch,
        kinds::{Event, Job, Node, Pod, ResourceQuota},
    },
    launcher::{
        Flags, Plan, Run, RunName, RunOptions, Settings, config,
        explain::Cause,
        plan,
        preflight::{self, Finding, Purpose, Report},
        runs::RunRole,
        why::{self, State, Why},
    },
};
use serde_json::{Value, json};

use crate::{common::Fixture, permissions::as_user};

const RUN: &str = "digits-x7k2p";

fn run(fixture: &Fixture) -> Run {
    Run {
        name: RunName::existing(RUN).unwrap(),
        namespace: fixture.namespace().to_owned(),
        schedule: None,
        roles: vec![RunRole {
            name: "worker".into(),
            count: 1,
            service: false,
        }],
    }
}

fn labels() -> Value {
    json!({"longshore.dev/run": RUN, "longshore.dev/role": "worker"})
}

async fn job(fixture: &Fixture) {
    let job = json!({
        "metadata": {"name": format!("{RUN}-worker"), "labels": labels()},
        "spec": {
            "completions": 1, "parallelism": 1, "backoffLimit": 0,
            "template": {"metadata": {"labels": labels()}, "spec": {
                "restartPolicy": "Never", "containers": [{"name": "main", "image": "trainer:1"}],
            }},
        },
    });
    fixture.view::<Job>().create(&job).await.unwrap();
}

/// The only pod of the run, with the status that a kubelet would write.
async fn pod(fixture: &Fixture, status: Value) {
    let pod = json!({
        "metadata": {
            "name": format!("{RUN}-worker-0-abcde"), "labels": labels(),
            "annotations": {"batch.kubernetes.io/job-completion-index": "0"},
        },
        "spec": {
            "nodeName": "n1", "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "trainer:1", "resources": {"limits": {"memory": "1Gi"}}}],
        },
    });
    let pods = fixture.view::<Pod>();
    let made = pods.create(&pod).await.unwrap();
    let patch = Patch::merge(json!({ "status": status }));
    made.patch_status(&patch).await.unwrap();
}

fn main_container(state: Value) -> Value {
    json!([{
        "name": "main", "image": "trainer:1", "imageID": "", "ready": false, "restartCount": 0,
        "state": state,
    }])
}

async fn explain(fixture: &Fixture) -> Why {
    why::why(&fixture.cluster, &run(fixture)).await.unwrap()
}

fn launcher_image() -> RunOptions {
    RunOptions {
        launcher_image: Some("registry.example/longshore:1".into()),
        ..RunOptions::default()
    }
}

fn plan_of(fixture: &Fixture, flags: Flags) -> Plan {
    let flags = Flags {
        command: vec!["true".into()],
        run: launcher_image(),
        ..flags
    };
    let spec = config::resolve(&Settings::default(), &flags, "demo").unwrap();
    let run = RunName::new("demo", "ab2cd");
    plan::plan(&spec, &run, fixture.namespace(), None).unwrap()
}

/// The findings of preflight, except the server version: the real server may be too old
/// for runs.
async fn check(cluster: &Cluster, plan: &Plan) -> Report {
    let report = preflight::check(cluster, plan, Purpose::Follow).await;
    let mut report = report.unwrap();
    let is_version = |found: &Finding| found.kind == Cause::ServerTooOld;
    report.refusals.retain(|found| !is_version(found));
    report
}

fn words(report: &Report) -> String {
    let all = report.refusals.iter().chain(&report.warnings);
    all.map(|known| format!("{known}\n")).collect()
}

#[tokio::test]
async fn out_of_memory_is_detected_from_the_pod_status() {
    let fixture = Fixture::start().await;
    job(&fixture).await;
    let ended = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
    pod(
        &fixture,
        json!({"phase": "Failed", "containerStatuses": main_container(ended)}),
    )
    .await;
    let why = explain(&fixture).await;
    assert_eq!((why.state, why.exit_code), (State::Failed, Some(137)));
    assert_eq!(why.summary, "worker/0: killed: out of memory (limit 1Gi)");
}

#[tokio::test]
async fn evictions_and_lost_nodes_are_explained() {
    for (status, kind) in [
        (
            json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: ephemeral-storage. "}),
            "evicted",
        ),
        (
            json!({"phase": "Failed", "reason": "NodeLost", "message": "Node n1 which was running pod x is unresponsive"}),
            "node-lost",
        ),
    ] {
        let fixture = Fixture::start().await;
        job(&fixture).await;
        pod(&fixture, status).await;
        let why = explain(&fixture).await;
        assert_eq!(why.explanation.unwrap().kind.as_str(), kind);
    }
}

#[tokio::test]
async fn an_image_pull_error_is_explained_from_the_event() {
    let fixture = Fixture::start().await;
    job(&fixture).await;
    let waits = json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"trainer:1\""}});
    pod(
        &fixture,
        json!({"phase": "Pending", "containerStatuses": main_container(waits)}),
    )
    .await;
    let event = json!({
        "metadata": {"name": "pull"}, "type": "Warning", "reason": "Failed",
        "message": "Failed to pull image \"trainer:1\": manifest unknown",
        "involvedObject": {"kind": "Pod", "namespace": fixture.namespace(), "name": format!("{RUN}-worker-0-abcde")},
        "lastTimestamp": "2026-01-05T10:00:00Z",
    });
    fixture.view::<Event>().create(&event).await.unwrap();
    let why = explain(&fixture).await;
    assert_eq!(why.state, State::Waiting);
    assert_eq!(why.explanation.unwrap().kind.as_str(), "image-not-found");
}

#[tokio::test]
async fn an_exceeded_quota_is_explained_from_the_job_event() {
    let fixture = Fixture::start().await;
    job(&fixture).await;
    let event = json!({
        "metadata": {"name": "quota"}, "type": "Warning", "reason": "FailedCreate",
        "message": "Error creating: pods \"x\" is forbidden: exceeded quota: compute, requested: cpu=2, used: cpu=3, limited: cpu=4",
        "involvedObject": {"kind": "Job", "namespace": fixture.namespace(), "name": format!("{RUN}-worker")},
        "lastTimestamp": "2026-01-05T10:00:00Z",
    });
    fixture.view::<Event>().create(&event).await.unwrap();
    assert_eq!(
        explain(&fixture).await.summary,
        "worker: the quota \"compute\" is exceeded: cpu: a task needs 2, 3 of 4 are used"
    );
}

#[tokio::test]
async fn preflight_reports_nothing_for_a_valid_plan() {
    let fixture = Fixture::start().await;
    let plan = plan_of(&fixture, Flags::default());
    let report = check(&fixture.cluster, &plan).await;
    assert_eq!(words(&report), "");
}

#[tokio::test]
async fn preflight_lists_missing_permissions() {
    let fixture = Fixture::start().await;
    let plan = plan_of(&fixture, Flags::default());
    let unprivileged = as_user(&fixture, "unprivileged").await;
    let report = check(&unprivileged, &plan).await;
    let text = words(&report);
    let namespace = fixture.namespace();
    assert!(text.contains("create, patch secrets;"), "{text}");
    assert!(
        text.contains(&format!("in the namespace \"{namespace}\"")),
        "{text}"
    );
    assert!(text.contains("get pods/log;"), "{text}");
    // With the listed permissions, preflight reports nothing.
    let rule = |group: &str, resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    let group = "rbac.authorization.k8s.io";
    for object in [
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "Role",
            "metadata": {"name": "longshore", "namespace": namespace},
            "rules": [
                rule("batch", "jobs", &["create", "get", "list", "patch", "watch"]),
                rule("", "secrets", &["create", "patch"]),
                rule("", "pods/log", &["get"]),
                rule("", "pods", &["get", "list", "watch"]),
            ],
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
            "metadata": {"name": "longshore", "namespace": namespace},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "longshore"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "unprivileged"}],
        }),
    ] {
        fixture.cluster.create(&object, None).await.unwrap();
    }
    let report = check(&unprivileged, &plan).await;
    assert_eq!(words(&report), "");
}

#[tokio::test]
async fn preflight_checks_quotas() {
    let fixture = Fixture::start().await;
    fixture
        .with_status::<ResourceQuota>(
            "compute",
            &json!({"hard": {"requests.cpu": "3", "requests.memory": "1Gi"}}),
            &json!({"hard": {"requests.cpu": "3"}, "used": {"requests.cpu": "2"}}),
        )
        .await;
    let ask = async |cpu: &str| {
        let flags = Flags {
            cpu: Some(cpu.into()),
            ..Flags::default()
        };
        let plan = plan_of(&fixture, flags);
        check(&fixture.cluster, &plan).await
    };
    assert_eq!(words(&ask("1").await), "");
    let later = ask("2").await;
    assert!(later.refusals.is_empty() && later.warnings.len() == 1);
    let never = words(&ask("4").await);
    assert!(
        never.contains("allows 3 of requests.cpu in total, and the run needs 4"),
        "{never}"
    );
}

#[tokio::test]
async fn preflight_checks_nodes_and_references() {
    let fixture = Fixture::start().await;
    // Only this test uses this resource and this node.
    let name = format!("node-{}", fixture.namespace());
    let device = format!("example.com/{}", fixture.namespace());
    let nodes = fixture.cluster.view::<Node>();
    nodes
        .create(&json!({"metadata": {"name": name}}))
        .await
        .unwrap();
    let amounts = json!({"cpu": "2", "memory": "1Gi", "pods": "10", &device: "1"});
    let status = json!({"status": {"capacity": amounts, "allocatable": amounts}});
    nodes
        .patch_status(&name, &Patch::merge(status))
        .await
        .unwrap();
    let settings = |number: u32| {
        let text =
            format!("service_account = \"trainer\"\n[resources]\n\"{device}\" = \"{number}\"\n");
        Settings::parse(&text, "longshore.toml".as_ref()).unwrap()
    };
    let ask = async |number| {
        let flags = Flags {
            command: vec!["true".into()],
            run: launcher_image(),
            ..Flags::default()
        };
        let spec = config::resolve(&settings(number), &flags, "demo").unwrap();
        let plan = plan::plan(
            &spec,
            &RunName::new("demo", "ab2cd"),
            fixture.namespace(),
            None,
        );
        let plan = plan.unwrap();
        let report = check(&fixture.cluster, &plan).await;
        words(&report)
    };
    let one = ask(1).await;
    assert!(
        one.starts_with("the ServiceAccount \"trainer\" is missing"),
        "{one}"
    );
    assert_eq!(one.lines().count(), 1, "{one}");
    let two = ask(2).await;
    let _ = nodes.delete(&name, &Default::default()).await;
    assert!(
        two.contains(&format!("the largest node, {name}, has 1")),
        "{two}"
    );
    assert_eq!(two.lines().count(), 2, "{two}");
}
