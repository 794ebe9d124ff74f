//! Launching a folder in one call: the order of the steps, and the remaining objects if a step
//! fails.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use super::fake::{Answer, End, Fake, ReceivedRequest, list, status};
use futures::{StreamExt, stream};
use longshore_launcher::{
    Flags, LaunchError, LaunchOptions, RunOptions, RunSpec, launch::LaunchProgress,
};
use rand::Rng;
use serde_json::json;
use tokio::sync::Notify;

/// A folder of code, and a store next to it.
struct Folder {
    parent: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        let folder = Self {
            parent: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(folder.code()).unwrap();
        fs::create_dir(folder.store()).unwrap();
        fs::write(folder.code().join("train.py"), "print('ok')").unwrap();
        folder
    }

    fn code(&self) -> PathBuf {
        self.parent.path().join("Digits")
    }

    fn store(&self) -> PathBuf {
        self.parent.path().join("store")
    }

    fn spec(&self) -> RunSpec {
        let flags = Flags {
            command: vec!["python".into(), "train.py".into()],
            run: RunOptions {
                launcher_image: Some("registry.example/longshore:1".into()),
                store: Some(format!("file://{}", self.store().display()).as_str().into()),
                ..RunOptions::default()
            },
            ..Flags::default()
        };
        RunSpec::load(&self.code(), &flags).unwrap()
    }
}

/// A cluster where every check succeeds and every object is created, unless `special` answers the
/// request.
fn cluster(special: impl Fn(&ReceivedRequest) -> Option<Answer> + Send + Sync + 'static) -> Fake {
    let fake = Fake::new(|asked| match (asked.method.as_str(), asked.path.as_str()) {
        (_, path) if path.ends_with("reviews") => Answer::Json(
            201,
            json!({"kind": "SelfSubjectAccessReview", "status": {"allowed": true}}),
        ),
        ("GET", "/version") => Answer::Json(200, json!({"major": "1", "minor": "34"})),
        ("GET", path) if path.ends_with("/namespaces/default") => Answer::Json(
            200,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "uid": "u"}}),
        ),
        ("GET", path) if path.ends_with("/jobs") => list("Job", "batch/v1", vec![]),
        ("GET", path) if path.ends_with("/cronjobs") => list("CronJob", "batch/v1", vec![]),
        ("GET", _) => list("Secret", "v1", vec![]),
        ("DELETE", _) => Answer::Json(
            200,
            json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
        ),
        _ => created(asked),
    });
    fake.with(special)
}

/// The object as the server returns it.
fn created(asked: &ReceivedRequest) -> Answer {
    let mut object = asked.body.clone();
    if asked.method == "PATCH" {
        object["metadata"]["name"] = json!(asked.path.rsplit('/').next().unwrap());
    }
    object["metadata"]["uid"] = json!("u");
    object["metadata"]["namespace"] = json!("default");
    object["metadata"]["resourceVersion"] = json!("1");
    Answer::Json(201, object)
}

/// Returns true if a request creates an object.
fn creates(asked: &ReceivedRequest, plural: &str) -> bool {
    asked.method == "POST" && asked.query.is_empty() && asked.path.ends_with(plural)
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[tokio::test]
async fn a_folder_is_launched_in_one_call() {
    let folder = Folder::new();
    let progress = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&progress);
    let options = LaunchOptions {
        progress: Arc::new(move |progress| seen.lock().unwrap().push(progress)),
        ..LaunchOptions::default()
    };
    // The store must have the bundle before the first object is created.
    let bundles = folder.store().join("bundles");
    let fake = cluster(move |asked| {
        assert!(!creates(asked, "/secrets") || !is_empty(&bundles));
        None
    });
    let launched = folder
        .spec()
        .submit(&fake.cluster(), &folder.code(), options)
        .await
        .unwrap();
    assert!(launched.run.name.as_str().starts_with("digits-"));
    assert_eq!(launched.packed.unwrap().files, 1);
    assert_eq!(launched.warnings, []);
    let writes = fake.writes();
    let created: Vec<&str> = writes
        .iter()
        .filter_map(|write| write.strip_prefix("POST "))
        .filter(|path| !path.ends_with("reviews"))
        .collect();
    assert_eq!(
        created,
        [
            "/api/v1/namespaces/default/secrets",
            "/apis/batch/v1/namespaces/default/jobs"
        ]
    );
    let progress = progress.lock().unwrap();
    let is_packing = |one: &LaunchProgress| matches!(one, LaunchProgress::Packing(_));
    assert!(is_packing(&progress[0]), "{progress:?}");
    assert!(!is_packing(progress.last().unwrap()), "{progress:?}");
}

#[tokio::test]
async fn nothing_is_created_or_uploaded_if_preflight_finds_problems() {
    let folder = Folder::new();
    let fake = cluster(|asked| {
        let namespace = asked.path == "/api/v1/namespaces/default";
        namespace.then(|| status(404, "NotFound", "namespaces \"default\" not found"))
    });
    let spec = folder.spec();
    let options = LaunchOptions::default();
    let launched = spec.submit(&fake.cluster(), &folder.code(), options).await;
    let error = launched.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the run cannot start: the cluster has no namespace \"default\"; create it with `kubectl create namespace default`, or choose another"
    );
    assert!(matches!(error, LaunchError::Refused(problems) if problems.len() == 1));
    let requests = fake.requests.lock().unwrap();
    let changes = |asked: &&ReceivedRequest| {
        asked.method != "GET" && asked.query != "dryRun=All" && !asked.path.ends_with("reviews")
    };
    assert!(!requests.iter().any(|asked| changes(&asked)));
    assert!(is_empty(&folder.store()));
}

#[tokio::test]
async fn an_abandoned_launch_leaves_no_objects() {
    let folder = Folder::new();
    let (reached, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (reach, release) = (Arc::clone(&reached), Arc::clone(&released));
    let jobs = Mutex::new(Vec::new());
    // The server creates the Job, but its response arrives later.
    let fake = cluster(move |asked| {
        if asked.method == "GET" && asked.path.ends_with("/jobs") {
            return Some(list("Job", "batch/v1", jobs.lock().unwrap().clone()));
        }
        if !creates(asked, "/jobs") {
            return None;
        }
        let Answer::Json(_, object) = created(asked) else {
            return None;
        };
        jobs.lock().unwrap().push(object.clone());
        reach.notify_one();
        let release = Arc::clone(&release);
        let response = stream::once(async move {
            release.notified().await;
            Ok(object.to_string())
        });
        Some(Answer::Live(response.boxed()))
    });
    let (cluster, spec, code) = (fake.cluster(), folder.spec(), folder.code());
    let launch = spec.submit(&cluster, &code, LaunchOptions::default());
    tokio::select! {
        launched = launch => panic!("{launched:?}"),
        () = reached.notified() => {}
    }
    released.notify_one();
    let begin = Instant::now();
    let is_deleted =
        |write: &String| write.starts_with("DELETE /apis/batch/v1/namespaces/default/jobs/digits-");
    while !fake.writes().iter().any(is_deleted) {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{:?}",
            fake.writes()
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn code_that_fits_nowhere_is_reported_before_any_request() {
    let folder = Folder::new();
    // Random bytes do not shrink.
    let mut bytes = vec![0; 2 << 20];
    rand::rng().fill_bytes(&mut bytes);
    fs::write(folder.code().join("weights.bin"), bytes).unwrap();
    let fake = Fake::new(|_| Answer::Stream(vec![], End::Ends));
    let spec = RunSpec {
        store: None,
        ..folder.spec()
    };
    let options = LaunchOptions::default();
    let launched = spec.submit(&fake.cluster(), &folder.code(), options).await;
    let error = launched.unwrap_err().to_string();
    assert!(
        error.contains("set `store`") && error.contains("weights.bin"),
        "{error}"
    );
    assert!(fake.requests.lock().unwrap().is_empty());
}
