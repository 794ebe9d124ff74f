//! A followed run survives its API server and its node agent, each ended and
//! started again alone. On a real kube-apiserver the node agent is its kubelet;
//! an embedded server alone knows nothing of an outside node's logs, so there
//! only the run's course is followed.

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
    common::Here,
    kubelet::{Kubelet, Uids},
    own::OwnServer,
};

const RUN: &str = "count-x7k2p";
const TASKS: u32 = 3;
/// Long enough for anything that happens at all.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run whose objects are written by hand: no controller works here.
struct Stage {
    cluster: Cluster,
    namespace: String,
    node: String,
    folder: tempfile::TempDir,
    uids: Uids,
}

impl Stage {
    fn labels() -> Value {
        json!({"longshore.dev/run": RUN, "longshore.dev/role": "worker"})
    }

    fn pods(&self) -> View<Pod> {
        self.cluster.pods().in_namespace(&self.namespace).unwrap()
    }

    fn jobs(&self) -> View<Job> {
        self.cluster.jobs().in_namespace(&self.namespace).unwrap()
    }

    fn end(&self) -> PathBuf {
        self.folder.path().join("end")
    }

    /// A file that has as many lines as a task has printed, wherever its log is.
    fn printed(&self, task: u32, attempt: u32) -> PathBuf {
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

    /// The pods of all tasks, as the Job controller and the scheduler make them.
    async fn attempt(&self, attempt: u32) {
        for task in 0..TASKS {
            let name = format!("{RUN}-worker-{task}-{attempt}");
            let script = format!(
                "i=0; while ! test -e {end}; do echo \"{attempt} $i\"; echo >> {printed}; i=$((i+1)); sleep 0.02; done; exit $(cat {end})",
                end = self.end().display(),
                printed = self.printed(task, attempt).display(),
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

    /// Waits until all tasks have printed more than now.
    async fn goes_on(&self, attempt: u32) {
        let read = |path: &Path| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.lines().count()
        };
        let now = || (0..TASKS).map(|task| read(&self.printed(task, attempt)));
        let before: Vec<usize> = now().collect();
        let begin = std::time::Instant::now();
        while !now().zip(&before).all(|(now, before)| now > before + 20) {
            assert!(begin.elapsed() < PATIENCE, "{before:?}: nothing more");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Follows to the end: what each task printed, by attempt.
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
    let here = Here::start().await;
    let mut server = OwnServer::start(&here.test).await;
    let cluster = server.cluster().await;
    if !here.test.is_real() {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": here.namespace()}});
        cluster.create(&namespace, None).await.unwrap();
    }
    let stage = Stage {
        cluster: cluster.clone(),
        namespace: here.namespace().to_owned(),
        node: format!("node-{}", here.namespace()),
        folder: tempfile::tempdir().unwrap(),
        uids: Uids::default(),
    };
    let kubelet = stage.kubelet().await;
    stage.job().await;
    stage.attempt(0).await;
    let run = Run {
        name: RunName::existing(RUN).unwrap(),
        namespace: stage.namespace.clone(),
        schedule: None,
        roles: vec![RunRole {
            name: "worker".into(),
            count: TASKS,
            service: false,
        }],
    };
    let options = FollowOptions {
        logs: here.test.is_real(),
        ..FollowOptions::default()
    };
    let following = Follow::start(&server.cluster().await, &run, options).await;
    let following = tokio::spawn(follow(following.unwrap()));
    stage.goes_on(0).await;

    // The server is away for a while; the pods know nothing of it.
    server.end().await;
    stage.goes_on(0).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.start_again().await;
    stage.goes_on(0).await;

    // The node agent is killed, its pods with it; it tells so when it is back,
    // and the Job controller makes others.
    drop(kubelet);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let _kubelet = stage.kubelet().await;
    for task in 0..TASKS {
        let name = format!("{RUN}-worker-{task}-0");
        let failed = |pod: &longshore::Item<Pod>| {
            let phase = pod.status_field::<String>(&["phase"]);
            phase.is_ok_and(|phase| phase == "Failed")
        };
        let pod = stage.pods().wait(&name, failed, PATIENCE).await.unwrap();
        let text = pod.raw().unwrap().to_string();
        assert!(text.contains("ContainerStatusUnknown"), "{text}");
    }
    // Creation times are whole seconds.
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.attempt(1).await;
    stage.goes_on(1).await;
    assert!(!following.is_finished());

    std::fs::write(stage.end(), code.to_string()).unwrap();
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
        stage.jobs().patch_status(&name, &patch).await.unwrap();
    }
    let ended = tokio::time::timeout(PATIENCE, following).await;
    let (lines, outcome) = ended.expect("the run ends").unwrap();
    assert_eq!(outcome.exit_code, code, "{outcome:?}");
    if here.test.is_real() {
        assert_eq!(lines.len(), 2 * TASKS as usize);
        for ((task, attempt), numbers) in &lines {
            assert!(
                numbers.iter().copied().eq(0..numbers.len()),
                "{task}: {numbers:?}"
            );
            let name = format!("{RUN}-worker-{task}-{attempt}");
            let log = stage.pods().logs(&name, &LogOptions::default()).await;
            let log: Vec<_> = log.unwrap().try_collect().await.unwrap();
            let log = log.concat();
            let there = log.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(numbers.len(), there, "{name}");
        }
    }
    let nodes = stage.cluster.view::<Node>();
    let _ = nodes.delete(&stage.node, &Default::default()).await;
    server.end().await;
}

#[tokio::test]
async fn a_run_survives_its_server_and_its_node_and_ends_well() {
    survives(0).await;
}

#[tokio::test]
async fn a_run_survives_its_server_and_its_node_and_fails() {
    survives(7).await;
}
