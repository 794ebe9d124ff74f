//! Tests of the logs of deleted pods.
#![allow(clippy::unwrap_used)]

use std::{fs, io::Write as _, path::Path, sync::Arc};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use longshore_node_api::{LogError, LogRequest, NodeLogs as _, PodLogs};
use serde_json::json;

use super::{FILE, KeptPod};
use crate::logs::{LogLimits, LogReader, LogStore};

/// A pod that is controlled by a Job or by another `kind`.
fn pod(uid: &str, kind: &str) -> Pod {
    let owner = json!({
        "apiVersion": "batch/v1", "kind": kind, "name": "train", "uid": "job", "controller": true,
    });
    let long = "x".repeat(super::LONGEST_ANNOTATION + 1);
    serde_json::from_value(json!({
        "metadata": {
            "name": "train-0", "namespace": "team", "uid": uid, "ownerReferences": [owner],
            "labels": {"app": "train"}, "annotations": {"short": "a", "long": long},
        },
        "spec": {"containers": [{"name": "main"}], "initContainers": [{"name": "fetch"}]},
    }))
    .unwrap()
}

struct Fixture {
    folder: tempfile::TempDir,
    store: Arc<LogStore>,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = LogStore::keeping(folder.path().to_owned(), LogLimits::default(), None);
        Self { folder, store }
    }

    /// Starts another agent on the same folder. No pod exists any more.
    fn restart(self) -> Self {
        let folder = self.folder;
        let store = LogStore::keeping(folder.path().to_owned(), LogLimits::default(), None);
        store.keep_only(&|_| false);
        Self { folder, store }
    }

    fn path(&self, uid: &str) -> std::path::PathBuf {
        self.folder.path().join(uid)
    }

    /// Adds a pod whose container `main` has written a line.
    fn add(&self, uid: &str, kind: &str) {
        self.store.record(KeptPod::of(&pod(uid, kind)));
        self.store.add_pod(uid, vec!["main".to_owned()]);
        write(&self.path(uid).join("main"), "0.log", "epoch 1");
    }

    async fn list(&self, namespace: &str) -> Vec<PodLogs> {
        let reader = LogReader::new(self.store.clone());
        let mut found = reader.list(namespace).await.unwrap();
        found.sort_by(|a, b| a.uid.cmp(&b.uid));
        found
    }

    async fn read(&self, request: LogRequest) -> Result<String, LogError> {
        let reader = LogReader::new(self.store.clone());
        let mut stream = std::pin::pin!(reader.open_deleted(request).await?);
        let mut all = Vec::new();
        while let Some(chunk) = stream.next().await {
            all.extend_from_slice(&chunk.unwrap());
        }
        Ok(String::from_utf8(all).unwrap())
    }
}

fn write(folder: &Path, file: &str, line: &str) {
    fs::create_dir_all(folder).unwrap();
    let mut file = fs::File::create(folder.join(file)).unwrap();
    writeln!(file, "2026-01-01T00:00:00.000000000Z stdout F {line}").unwrap();
}

fn request(uid: &str) -> LogRequest {
    LogRequest {
        namespace: "team".to_owned(),
        pod: "train-0".to_owned(),
        uid: uid.to_owned(),
        container: "main".to_owned(),
        ..LogRequest::default()
    }
}

#[test]
fn only_the_pods_of_jobs_are_recorded() {
    assert_eq!(KeptPod::of(&pod("u", "ReplicaSet")), None);
    let mut alone = pod("u", "Job");
    alone.metadata.owner_references = None;
    assert_eq!(KeptPod::of(&alone), None);
    let kept = KeptPod::of(&pod("u", "Job")).unwrap();
    let annotations: Vec<&String> = kept.metadata.annotations.keys().collect();
    assert_eq!(annotations, ["short"]);
    assert_eq!(kept.containers, ["fetch", "main"]);
}

#[tokio::test]
async fn the_log_of_a_deleted_pod_is_read_until_its_job_is_removed() {
    let fixture = Fixture::new();
    fixture.add("u", "Job");
    fixture.add("other", "ReplicaSet");
    assert_eq!(fixture.list("team").await[0].deleted, None);
    for uid in ["u", "other"] {
        fixture.store.remove_pod(uid);
    }
    assert!(!fixture.path("other").exists());
    let listed = fixture.list("team").await;
    assert_eq!(listed.len(), 1);
    assert!(listed[0].deleted.is_some());
    assert_eq!(listed[0].containers[0].name, "main");
    assert_eq!(listed[0].owner.uid, "job");
    assert_eq!(fixture.read(request("u")).await.unwrap(), "epoch 1\n");

    // The agent was killed before it could write that the pod was deleted.
    let fixture = fixture.restart();
    assert_eq!(fixture.read(request("u")).await.unwrap(), "epoch 1\n");
    let kept = fixture.store.kept().unwrap();
    kept.owner_removed("another job");
    kept.owner_exists("job");
    kept.enforce_limits();
    assert!(fixture.path("u").exists());
    kept.owner_removed("job");
    assert!(!fixture.path("u").exists());
    assert_eq!(fixture.list("team").await, []);
}

#[tokio::test]
async fn a_log_is_read_only_with_the_namespace_and_name_of_its_pod() {
    let fixture = Fixture::new();
    fixture.add("u", "Job");
    fixture.store.remove_pod("u");
    assert_eq!(fixture.list("default").await, []);
    type Change = fn(&mut LogRequest);
    let changes: [Change; 5] = [
        |request| request.namespace = "default".to_owned(),
        |request| request.pod = "train-1".to_owned(),
        |request| request.uid = "v".to_owned(),
        |request| request.uid = "../u".to_owned(),
        |request| request.container = "../main".to_owned(),
    ];
    for change in changes {
        let mut request = request("u");
        change(&mut request);
        let refused = fixture.read(request).await;
        assert!(matches!(refused, Err(LogError::NotFound(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn a_pod_that_has_written_nothing_is_not_kept() {
    let fixture = Fixture::new();
    fixture.store.record(KeptPod::of(&pod("u", "Job")));
    fixture.store.add_pod("u", vec!["main".to_owned()]);
    fixture.store.remove_pod("u");
    assert!(!fixture.path("u").exists());
    fixture.store.record(KeptPod::of(&pod("u", "Job")));
    let fixture = fixture.restart();
    assert!(!fixture.path("u").exists());
}

#[tokio::test]
async fn a_damaged_record_is_ignored() {
    let fixture = Fixture::new();
    for uid in ["u", "v"] {
        fixture.add(uid, "Job");
    }
    fs::write(fixture.path("u").join(FILE), "{").unwrap();
    // The record was copied from another pod.
    fs::copy(fixture.path("v").join(FILE), fixture.path("u").join(FILE)).unwrap();
    let fixture = fixture.restart();
    let uids: Vec<String> = fixture
        .list("team")
        .await
        .into_iter()
        .map(|pod| pod.uid)
        .collect();
    assert_eq!(uids, ["v"]);
    assert!(!fixture.path("u").exists());
}

#[tokio::test]
async fn a_removed_log_leaves_the_reason() {
    let fixture = Fixture::new();
    fixture.add("u", "Job");
    fixture.store.remove_pod("u");
    let kept = fixture.store.kept().unwrap();
    kept.owner_exists("job");
    kept.remove_logs("u");
    let fixture = fixture.restart();
    let listed = fixture.list("team").await;
    assert!(listed[0].removed.as_ref().unwrap().contains("disk space"));
    assert_eq!(listed[0].containers, []);
    let refused = fixture.read(request("u")).await.unwrap_err();
    assert!(refused.to_string().contains("disk space"), "{refused}");
}

#[tokio::test]
async fn logs_without_their_first_file_are_cut() {
    let fixture = Fixture::new();
    fixture.add("u", "Job");
    let folder = fixture.path("u").join("main");
    write(&folder, "1.3.log", "epoch 8");
    write(&folder, "1.4.log", "epoch 9");
    let listed = fixture.list("team").await;
    let instances = &listed[0].containers[0].instances;
    let found: Vec<_> = instances
        .iter()
        .map(|log| (log.restart, log.is_cut))
        .collect();
    assert_eq!(found, [(0, false), (1, true)]);
    fixture.store.remove_pod("u");
    assert_eq!(
        fixture.read(request("u")).await.unwrap(),
        "epoch 8\nepoch 9\n"
    );
}

/// The Jobs of a JobSet are removed and created again when it restarts.
#[tokio::test]
async fn the_owner_of_a_job_decides() {
    let fixture = Fixture::new();
    fixture.add("u", "Job");
    let set = longshore_model::meta::OwnerReference {
        kind: "JobSet".to_owned(),
        uid: "set".to_owned(),
        ..Default::default()
    };
    let kept = fixture.store.kept().unwrap();
    assert_eq!(kept.unresolved().len(), 1);
    kept.resolve("job", Some(&set));
    assert_eq!(kept.unresolved(), []);
    // The pod changes later.
    fixture.store.record(KeptPod::of(&pod("u", "Job")));
    fixture.store.remove_pod("u");
    kept.owner_removed("job");
    assert_eq!(kept.owners(false)[0].1.uid, "set");
    kept.write_again();
    let fixture = fixture.restart();
    let kept = fixture.store.kept().unwrap();
    kept.owner_removed("set");
    assert!(!fixture.path("u").exists());
}
