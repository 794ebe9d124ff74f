//! A followed run survives restarts of its API server and of its node agent. With a real
//! kube-apiserver, the node agent is the kubelet. An embedded server without its own node
//! cannot serve the logs of external nodes, so there the test follows only the status of
//! the run.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use futures::TryStreamExt as _;
use longshore::{
    Cluster,
    client::{
        LogOptions, Patch, View,
        kinds::{Job, Node, Pod},
    },
    launcher::{Event, Follow, FollowOptions, Outcome, Run, RunName, runs::RunRole},
};
use serde_json::{Value, json};

use crate::{
    common::Fixture,
    kubelet::{Kubelet, Uids},
    own_server::OwnServer,
};

const RUN: &str = "count-x7k2p";
const TASKS: u32 = 3;
/// Longer than any single step takes.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// A run whose objects the test creates, because no controllers run.
struct ManualRun {
    cluster: Cluster,
    namespace: String,
    node: String,
    folder: tempfile::TempDir,
    uids: Uids,
}

impl ManualRun {
    fn labels() -> Value {
        json!({"longshore.dev/run": RUN, "longshore.dev/role": "worker"})
    }

    fn pods(&self) -> View<Pod> {
        self.cluster.pods().in_namespace(&self.namespace).unwrap()
    }

    fn jobs(&self) -> View<Job> {
        self.cluster.jobs().in_namespace(&self.namespace).unwrap()
    }

    fn exit_code_file(&self) -> PathBuf {
        self.folder.path().join("end")
    }

    /// A file with as many lines as the task has printed, independent of its log.
    fn line_count_file(&self, task: u32, attempt: u32) -> PathBuf {
        self.folder.path().join(format!("{task}-{attempt}"))
    }

    async fn job(&self) {
        let job = json!({
            "metadata": {"name": format!("{RUN}-worker"), "labels": Self::labels()},
            "spec": {
                "completions": TASKS, "parallelism": TASKS, "backoffLimit": 9,
                "template": {"metadata": {"labels": Self::labels()}, "spec": {
                    "restartPolicy": "Never", "containers": [{"name": "main", "image": "any"}],
                }},
            },
        });
        self.jobs().create(&job).await.unwrap();
    }

    async fn kubelet(&self) -> Kubelet {
        let folder = self.folder.path().join("node");
        Kubelet::start(&self.cluster, &self.node, folder, &self.uids).await
    }

    /// Creates the pods of all tasks as the Job controller and the scheduler would.
    async fn create_pods(&self, attempt: u32) {
        for task in 0..TASKS {
            let name = format!("{RUN}-worker-{task}-{attempt}");
            let script = format!(
                "i=0; while ! test -e {end}; do echo \"{attempt} $i\"; echo >> {printed}; i=$((i+1)); sleep 0.02; done; exit $(cat {end})",
                end = self.exit_code_file().display(),
                printed = self.line_count_file(task, attempt).display(),
            );
            let pod = json!({
                "metadata": {
                    "name": name, "labels": Self::labels(),
                    "annotations": {"batch.kubernetes.io/job-completion-index": task.to_string()},
                },
                "spec": {
                    "nodeName": self.node, "restartPolicy": "Never",
                    "automountServiceAccountToken": false,
                    "containers": [{"name": "main", "image": "any", "command": ["sh", "-c", script]}],
                },
            });
            let made = self.pods().create(&pod).await.unwrap();
            let uid = made.uid().to_owned();
            self.uids.lock().unwrap().insert(name, uid);
        }
    }

    /// Waits until all tasks have printed more lines.
    async fn wait_for_progress(&self, attempt: u32) {
        let read = |path: &Path| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.lines().count()
        };
        let now = || (0..TASKS).map(|task| read(&self.line_count_file(task, attempt)));
        let before: Vec<usize> = now().collect();
        let begin = std::time::Instant::now();
        while !now().zip(&before).all(|(now, before)| now > before + 20) {
            assert!(begin.elapsed() < STEP_TIMEOUT, "{before:?}: no progress");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Follows the run to its end. Returns the lines of each task by attempt.
async fn follow(mut follow: Follow) -> (BTreeMap<(u32, String), Vec<usize>>, Outcome) {
    let mut lines = BTreeMap::<_, Vec<usize>>::new();
    loop {
        match follow.next().await.unwrap().unwrap() {
            Event::Log(line) => {
                let (attempt, number) = line.line.split_once(' ').unwrap();
                let key = (line.task.index, attempt.to_owned());
                lines.entry(key).or_default().push(number.parse().unwrap());
            }
            Event::Finished(outcome) => return (lines, outcome),
            _ => {}
        }
    }
}

async fn survives(code: i32) {
    let fixture = Fixture::start().await;
    let mut server = OwnServer::start(&fixture.test).await;
    let cluster = server.cluster().await;
    if !fixture.test.is_real() {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": fixture.namespace()}});
        cluster.create(&namespace, None).await.unwrap();
    }
    let manual = ManualRun {
        cluster: cluster.clone(),
        namespace: fixture.namespace().to_owned(),
        node: format!("node-{}", fixture.namespace()),
        folder: tempfile::tempdir().unwrap(),
        uids: Uids::default(),
    };
    let kubelet = manual.kubelet().await;
    manual.job().await;
    manual.create_pods(0).await;
    let run = Run {
        name: RunName::existing(RUN).unwrap(),
        namespace: manual.namespace.clone(),
        schedule: None,
        roles: vec![RunRole {
            name: "worker".into(),
            count: TASKS,
            service: false,
        }],
    };
    let options = FollowOptions {
        logs: fixture.test.is_real(),
        ..FollowOptions::default()
    };
    let following = Follow::start(&server.cluster().await, &run, options).await;
    let following = tokio::spawn(follow(following.unwrap()));
    manual.wait_for_progress(0).await;

    // The server is down for a while; the pods continue.
    server.stop().await;
    manual.wait_for_progress(0).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.restart().await;
    manual.wait_for_progress(0).await;

    // The node agent is killed with its pods. It reports the failed pods after its
    // restart, and the Job controller creates others.
    drop(kubelet);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let _kubelet = manual.kubelet().await;
    for task in 0..TASKS {
        let name = format!("{RUN}-worker-{task}-0");
        let failed = |pod: &longshore::Item<Pod>| {
            let phase = pod.status_field::<String>(&["phase"]);
            phase.is_ok_and(|phase| phase == "Failed")
        };
        let pod = manual
            .pods()
            .wait(&name, failed, STEP_TIMEOUT)
            .await
            .unwrap();
        let text = pod.raw().unwrap().to_string();
        assert!(text.contains("ContainerStatusUnknown"), "{text}");
    }
    // Creation timestamps have a resolution of one second.
    tokio::time::sleep(Duration::from_secs(1)).await;
    manual.create_pods(1).await;
    manual.wait_for_progress(1).await;
    assert!(!following.is_finished());

    std::fs::write(manual.exit_code_file(), code.to_string()).unwrap();
    if code != 0 {
        let now = jiff::Timestamp::now().to_string();
        let why = |kind| {
            json!({
                "type": kind, "status": "True", "reason": "BackoffLimitExceeded",
                "message": "Job has reached the specified backoff limit",
                "lastTransitionTime": now,
            })
        };
        tokio::time::sleep(Duration::from_secs(1)).await;
        let patch = Patch::merge(json!({"status": {
            "startTime": now, "conditions": [why("FailureTarget"), why("Failed")],
        }}));
        let name = format!("{RUN}-worker");
        manual.jobs().patch_status(&name, &patch).await.unwrap();
    }
    let ended = tokio::time::timeout(STEP_TIMEOUT, following).await;
    let (lines, outcome) = ended.expect("the run ends").unwrap();
    assert_eq!(outcome.exit_code, code, "{outcome:?}");
    if fixture.test.is_real() {
        assert_eq!(lines.len(), 2 * TASKS as usize);
        for ((task, attempt), numbers) in &lines {
            assert!(
                numbers.iter().copied().eq(0..numbers.len()),
                "{task}: {numbers:?}"
            );
            let name = format!("{RUN}-worker-{task}-{attempt}");
            let log = manual.pods().logs(&name, &LogOptions::default()).await;
            let log: Vec<_> = log.unwrap().try_collect().await.unwrap();
            let log = log.concat();
            let logged = log.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(numbers.len(), logged, "{name}");
        }
    }
    let nodes = manual.cluster.view::<Node>();
    let _ = nodes.delete(&manual.node, &Default::default()).await;
    server.stop().await;
}

#[tokio::test]
async fn a_run_survives_restarts_of_server_and_node_and_succeeds() {
    survives(0).await;
}

#[tokio::test]
async fn a_run_survives_restarts_of_server_and_node_and_fails() {
    survives(7).await;
}
