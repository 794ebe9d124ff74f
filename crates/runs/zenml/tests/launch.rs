//! Launching a pipeline on a fake cluster.
#![allow(clippy::unwrap_used)]

#[path = "../../launcher/tests/launcher/fake/mod.rs"]
mod fake;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use fake::{Answer, Fake, ReceivedRequest, list, status};
use longshore_launcher::why::why;
use longshore_zenml::{OrchestratorKubernetesBackend, PipelineConfig, ZenmlError};
use serde_json::json;

/// A cluster where every request succeeds, unless `special` answers it.
fn cluster(special: impl Fn(&ReceivedRequest) -> Option<Answer> + Send + Sync + 'static) -> Fake {
    Fake::new(move |asked| {
        if let Some(answer) = special(asked) {
            return answer;
        }
        let last = asked.path.rsplit('/').next().unwrap();
        let named = |mut object: serde_json::Value| {
            let name = object["metadata"]["name"].as_str().unwrap_or(last);
            let made =
                json!({"name": name, "namespace": "default", "uid": "u", "resourceVersion": "1"});
            object["metadata"] = made;
            object
        };
        match (asked.method.as_str(), last) {
            ("POST", "selfsubjectaccessreviews") => {
                let kind = "SelfSubjectAccessReview";
                Answer::Json(201, json!({"kind": kind, "status": {"allowed": true}}))
            }
            ("GET", "jobs") => {
                let job =
                    json!({"metadata": {"name": "zenml-a", "namespace": "default", "uid": "u"}});
                list("Job", "batch/v1", vec![job])
            }
            ("GET", "default") => Answer::Json(200, named(json!({"kind": "Namespace"}))),
            ("GET", _) => list("Any", "v1", vec![]),
            ("DELETE", _) => Answer::Json(200, json!({"kind": "Status", "status": "Success"})),
            _ => Answer::Json(201, named(asked.body.clone())),
        }
    })
}

fn config() -> PipelineConfig {
    PipelineConfig::from_json(r#"{"pipeline": {"args": {"name": "a"}}}"#).unwrap()
}

#[tokio::test]
async fn only_the_job_and_the_secret_are_created() {
    let fake = cluster(|_| None);
    let backend = OrchestratorKubernetesBackend::default();
    let launched = backend
        .launch_job(&fake.cluster(), &config())
        .await
        .unwrap();
    assert_eq!(launched.run.name.as_str(), "zenml-a");
    assert_eq!((launched.tar_path, launched.packed), (None, None));
    let mut writes = fake.writes();
    writes.retain(|write| !write.ends_with("reviews"));
    assert_eq!(
        writes,
        [
            "POST /api/v1/namespaces/default/secrets",
            "POST /apis/batch/v1/namespaces/default/jobs",
            "PATCH /api/v1/namespaces/default/secrets/zenml-a",
        ]
    );
    // The Job is the same as the one that was validated before.
    let asked = fake.requests.lock().unwrap();
    let made = |asked: &&ReceivedRequest| asked.method == "POST" && asked.path.ends_with("/jobs");
    let job = asked.iter().find(made).unwrap();
    let mut body = job.body.clone();
    let annotations = body["metadata"]["annotations"].as_object_mut().unwrap();
    assert!(annotations.remove("longshore.dev/submitted").is_some());
    // The owner is known only after a query of the cluster.
    for place in ["/metadata", "/spec/template/metadata"] {
        for notes in ["labels", "annotations"] {
            let notes = body.pointer_mut(&format!("{place}/{notes}")).unwrap();
            let names = ["longshore.dev/owner", "longshore.dev/local-owner"];
            notes
                .as_object_mut()
                .unwrap()
                .retain(|name, _| !names.contains(&name.as_str()));
        }
    }
    let planned = backend.create_job_object(&config()).unwrap();
    assert_eq!(body, serde_json::to_value(planned).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_launch_leaves_nothing_behind() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    let fake = cluster(|asked| {
        if asked.method == "POST" && asked.path.ends_with("/jobs") {
            BEGUN.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(300));
        }
        None
    });
    let (server, config) = (fake.cluster(), config());
    let backend = OrchestratorKubernetesBackend::default();
    tokio::select! {
        launched = backend.launch_job(&server, &config) => panic!("{launched:?}"),
        () = async {
            while !BEGUN.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        } => {}
    }
    let begin = Instant::now();
    let gone = "DELETE /apis/batch/v1/namespaces/default/jobs/zenml-a";
    while !fake.writes().iter().any(|write| write == gone) {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "{:?}",
            fake.writes()
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_rejection_by_the_cluster_is_reported() {
    let taken = cluster(|asked| {
        let is_secret = asked.method == "POST" && asked.path.ends_with("/secrets");
        is_secret.then(|| status(409, "AlreadyExists", "secrets \"zenml-a\" already exists"))
    });
    let backend = OrchestratorKubernetesBackend::default();
    let refused = backend
        .launch_job(&taken.cluster(), &config())
        .await
        .unwrap_err();
    assert!(matches!(refused, ZenmlError::Exists { .. }), "{refused}");
    assert!(
        !taken
            .writes()
            .iter()
            .any(|write| write.starts_with("DELETE"))
    );
    let forbidden = cluster(|asked| {
        let is_job = asked.method == "POST" && asked.path.ends_with("/jobs");
        is_job.then(|| status(403, "Forbidden", "exceeded quota: small"))
    });
    let refused = backend
        .launch_job(&forbidden.cluster(), &config())
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("exceeded quota"), "{refused}");
    let undone = "DELETE /api/v1/namespaces/default/secrets/zenml-a";
    assert!(forbidden.writes().iter().any(|write| write == undone));
}

/// The Job's own events are found, although the Job has the name of its run.
#[tokio::test]
async fn a_rejected_pod_is_explained() {
    let backend = OrchestratorKubernetesBackend::default();
    let job = backend.create_job_object(&config()).unwrap();
    let mut job = serde_json::to_value(job).unwrap();
    job["metadata"]["uid"] = json!("u");
    job["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    let said = "Error creating: pods \"zenml-a-0-x\" is forbidden: exceeded quota: small, \
                requested: pods=1, used: pods=1, limited: pods=1";
    let event = |about: &str, uid: &str| {
        json!({
            "metadata": {"name": format!("{about}.1"), "namespace": "default"},
            "type": "Warning", "reason": "FailedCreate", "message": said, "count": 3,
            "lastTimestamp": "2026-01-01T00:01:00Z",
            "involvedObject": {"kind": "Job", "name": about, "uid": uid},
        })
    };
    let answer = |about: &'static str, uid: &'static str| {
        let (job, event) = (job.clone(), event(about, uid));
        cluster(move |asked| match asked.path.rsplit('/').next() {
            Some("jobs") if asked.method == "GET" => {
                Some(list("Job", "batch/v1", vec![job.clone()]))
            }
            Some("events") => Some(list("Event", "v1", vec![event.clone()])),
            _ => None,
        })
    };
    let launched = backend
        .launch_job(&cluster(|_| None).cluster(), &config())
        .await;
    let run = launched.unwrap().run;
    let explained = why(&answer("zenml-a", "u").cluster(), &run).await.unwrap();
    let explanation = explained.explanation.unwrap();
    assert!(
        explanation.cause.contains("the quota \"small\""),
        "{explanation:?}"
    );
    // Events of another Job are ignored.
    let explained = why(&answer("zenml-ab", "v").cluster(), &run).await.unwrap();
    assert_eq!(explained.explanation, None);
}
