//! Launching a pipeline on a cluster that answers as the test tells it to.
#![allow(clippy::unwrap_used)]

mod fake;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use fake::{Answer, Asked, Fake, list, status};
use longshore_launcher::zenml::{OrchestratorKubernetesBackend, PipelineConfig, ZenmlError};
use serde_json::json;

/// A cluster where all is well, but for what the test says.
fn cluster(special: impl Fn(&Asked) -> Option<Answer> + Send + Sync + 'static) -> Fake {
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
async fn the_job_and_the_secret_are_created_and_nothing_else() {
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
    // The Job is what was shown before.
    let asked = fake.asked.lock().unwrap();
    let made = |asked: &&Asked| asked.method == "POST" && asked.path.ends_with("/jobs");
    let job = asked.iter().find(made).unwrap();
    assert_eq!(job.body, backend.create_job_object(&config()).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_gives_up_in_between_leaves_nothing_behind() {
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
async fn what_the_cluster_refuses_is_told() {
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
