//! Preflight: its requests, and its results when they fail.

use super::fake::{Answer, Fake, ReceivedRequest, list, status};
use longshore_launcher::{
    Flags, Plan, RunName, RunOptions, Settings, TaskOptions, config,
    plan::plan,
    preflight::{Purpose, check},
};
use serde_json::{Value, json};

fn simple() -> Plan {
    with_launcher(Some("registry.example/longshore:1"))
}

fn with_launcher(image: Option<&str>) -> Plan {
    let flags = Flags {
        command: vec!["true".into()],
        run: RunOptions {
            launcher_image: image.map(Into::into),
            ..RunOptions::default()
        },
        ..Flags::default()
    };
    let spec = config::resolve(&Settings::default(), &flags, "demo").unwrap();
    plan(&spec, &RunName::new("demo", "ab2cd"), "team", None).unwrap()
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "uid": "u"}})
}

/// A cluster where every check succeeds, unless `special` answers the request.
fn cluster(special: impl Fn(&ReceivedRequest) -> Option<Answer> + Send + Sync + 'static) -> Fake {
    Fake::new(move |asked| {
        if let Some(answer) = special(asked) {
            return answer;
        }
        match asked.path.as_str() {
            "/api/v1/namespaces/team" => Answer::Json(200, namespace()),
            path if path.ends_with("reviews") => Answer::Json(
                201,
                json!({"kind": "SelfSubjectAccessReview", "status": {"allowed": true}}),
            ),
            "/api/v1/namespaces/team/pods" => {
                assert_eq!(asked.query, "dryRun=All");
                Answer::Json(201, asked.body.clone())
            }
            path if path.ends_with("resourcequotas") => list("ResourceQuota", "v1", vec![]),
            path if path.ends_with("limitranges") => list("LimitRange", "v1", vec![]),
            "/api/v1/nodes" => list("Node", "v1", vec![]),
            "/version" => Answer::Json(200, json!({"major": "1", "minor": "34"})),
            path => panic!("unexpected request for {path}"),
        }
    })
}

#[tokio::test]
async fn eight_requests_when_every_check_succeeds() {
    let fake = cluster(|_| None);
    let report = check(&fake.cluster(), &simple(), Purpose::Follow).await;
    assert_eq!(report.unwrap(), Default::default());
    assert_eq!(fake.requests.lock().unwrap().len(), 8);
}

#[tokio::test]
async fn missing_read_permissions_block_nothing() {
    let fake = Fake::new(|_| status(403, "Forbidden", "no"));
    let report = check(&fake.cluster(), &simple(), Purpose::Follow).await;
    assert_eq!(report.unwrap(), Default::default());
    // A server without access reviews does not report permissions.
    let fake = cluster(|asked| {
        let review = asked.path.ends_with("reviews");
        review.then(|| {
            status(
                404,
                "NotFound",
                "the server could not find the requested resource",
            )
        })
    });
    let report = check(&fake.cluster(), &simple(), Purpose::Follow).await;
    assert_eq!(report.unwrap(), Default::default());
}

#[tokio::test]
async fn a_pod_that_admission_rejects_is_a_blocker() {
    let refusing = |message: &'static str| {
        cluster(move |asked| {
            let pods = asked.path == "/api/v1/namespaces/team/pods";
            pods.then(|| status(403, "Forbidden", message))
        })
    };
    let fake = refusing("pods \"preflight-\" is forbidden: images of hub.example are not allowed");
    let messages = blockers(&fake, &simple()).await;
    insta::assert_snapshot!(messages.join("\n"), @"the cluster does not admit the pods of main: images of hub.example are not allowed; change the named fields with a pod template (--template), or ask the administrator of the namespace");
    // The namespace is new; its service account is about to be created.
    let fake = refusing(
        "pods \"preflight-\" is forbidden: error looking up service account team/default: serviceaccount \"default\" not found",
    );
    assert_eq!(blockers(&fake, &simple()).await, [""; 0]);
}

#[tokio::test]
async fn permissions_are_checked_one_by_one_for_limited_users() {
    let fake = cluster(|asked| {
        if asked.path.ends_with("selfsubjectreviews") {
            let user = json!({"userInfo": {"username": "ann@example.com"}});
            return Some(Answer::Json(201, json!({"status": user})));
        }
        if !asked.path.ends_with("reviews") {
            return None;
        }
        let wanted = &asked.body["spec"]["resourceAttributes"];
        assert_eq!(wanted["namespace"], "team");
        let all = wanted["verb"] == "*";
        let jobs = wanted["verb"] == "create" && wanted["resource"] == "jobs";
        let allowed = !all && !jobs;
        Some(Answer::Json(
            201,
            json!({"kind": "SelfSubjectAccessReview", "status": {"allowed": allowed}}),
        ))
    });
    let report = check(&fake.cluster(), &simple(), Purpose::Follow)
        .await
        .unwrap();
    let messages: Vec<String> = report.refusals.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"you are not allowed to create jobs.batch in the namespace "team"; ask an administrator of the cluster for a Role with these permissions, bound to ann@example.com"#);
    let manifest = report.refusals[0].manifest.as_ref().unwrap();
    assert!(manifest.contains("name: ann@example.com"), "{manifest}");
}

#[tokio::test]
async fn an_unreachable_cluster_is_an_error_and_not_a_blocker() {
    let fake = Fake::new(|_| status(401, "Unauthorized", "who are you?"));
    let error = check(&fake.cluster(), &simple(), Purpose::Detach).await;
    assert!(error.unwrap_err().is_unauthorized());
    let fake = cluster(|asked| {
        let is_namespace = asked.path == "/api/v1/namespaces/team";
        is_namespace.then(|| status(404, "NotFound", "namespaces \"team\" not found"))
    });
    let report = check(&fake.cluster(), &simple(), Purpose::Follow)
        .await
        .unwrap();
    let messages: Vec<String> = report.refusals.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"the cluster has no namespace "team"; create it with `kubectl create namespace team`, or choose another"#);
}

async fn blockers(fake: &Fake, plan: &Plan) -> Vec<String> {
    let report = check(&fake.cluster(), plan, Purpose::Follow).await.unwrap();
    report.refusals.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_server_without_indexed_jobs_is_a_blocker() {
    for (minor, is_old) in [("20+", true), ("21", true), ("22", false), ("x", false)] {
        let fake = cluster(move |asked| {
            let version = json!({"major": "1", "minor": minor});
            (asked.path == "/version").then(|| Answer::Json(200, version))
        });
        let messages = blockers(&fake, &simple()).await;
        match is_old {
            false => assert_eq!(messages, [""; 0]),
            true => assert_eq!(
                messages,
                [format!(
                    "the cluster runs Kubernetes 1.{}, which has no Indexed Jobs; use a cluster of version 1.22 or newer",
                    minor.trim_end_matches('+')
                )]
            ),
        }
    }
}

fn node(runtime: &str) -> Value {
    json!({
        "metadata": {"name": "n", "uid": "n"},
        "status": {
            "nodeInfo": {"containerRuntimeVersion": runtime},
            "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn with_node(runtime: &'static str) -> Fake {
    cluster(move |asked| {
        let nodes = asked.path == "/api/v1/nodes";
        nodes.then(|| list("Node", "v1", vec![node(runtime)]))
    })
}

#[tokio::test]
async fn a_default_image_without_a_launcher_image_is_a_blocker_where_images_are_pulled() {
    let real = with_node("containerd://1.7.0");
    let messages = blockers(&real, &with_launcher(None)).await.join("\n");
    insta::assert_snapshot!(messages, @r#"the image "python:3-slim" does not contain the program longshore, and no launcher image provides it; build an image of the program with docker/Dockerfile (no release publishes one yet), push it to a registry that the nodes can pull from, and name it with --launcher-image or `launcher_image` in longshore.toml; or name an --image that contains longshore"#);
    assert_eq!(blockers(&real, &simple()).await, [""; 0]);
    let embedded = with_node("longshore://0.1.0");
    assert_eq!(blockers(&embedded, &with_launcher(None)).await, [""; 0]);
    // A custom image may contain the program.
    let flags = Flags {
        command: vec!["true".into()],
        task: TaskOptions {
            image: Some("registry.example/train:1".into()),
            ..TaskOptions::default()
        },
        ..Flags::default()
    };
    let spec = config::resolve(&Settings::default(), &flags, "demo").unwrap();
    let own = plan(&spec, &RunName::new("demo", "ab2cd"), "team", None).unwrap();
    assert_eq!(blockers(&real, &own).await, [""; 0]);
}

#[tokio::test]
async fn a_claim_on_the_embedded_cluster_must_exist() {
    let settings = "command = 'true'\n[[volumes]]\nclaim = 'data'\npath = '/data'";
    let settings = Settings::parse(settings, std::path::Path::new("longshore.toml")).unwrap();
    let spec = config::resolve(&settings, &Flags::default(), "demo").unwrap();
    let plan = plan(&spec, &RunName::new("demo", "ab2cd"), "team", None).unwrap();
    let embedded = || with_node("longshore://0.1.0");
    let existing = embedded().with(|asked| {
        let claim = asked.path.ends_with("/persistentvolumeclaims/data");
        claim.then(|| {
            Answer::Json(
                200,
                json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}),
            )
        })
    });
    assert_eq!(blockers(&existing, &plan).await, [""; 0]);
    let missing = embedded().with(|asked| {
        let claim = asked.path.ends_with("/persistentvolumeclaims/data");
        claim.then(|| {
            Answer::Json(
                404,
                json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}),
            )
        })
    });
    let messages = blockers(&missing, &plan).await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(
        messages[0].starts_with("the PersistentVolumeClaim \"data\" is missing"),
        "{messages:?}"
    );
}
