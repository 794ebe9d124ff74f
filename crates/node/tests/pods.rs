//! Pods on a real API, bound by hand, run as real processes.
#![allow(clippy::unwrap_used)]

use std::{path::Path, sync::Arc, time::Duration};

use futures::StreamExt;
use longshore_apiserver::{ApiServer, NoLogs, NoStreams};
use longshore_client::{Cluster, DeleteOptions, WatchEvent};
use longshore_engine::Engine;
use longshore_node::{LogLimits, LogQuery, LogReadError, NodeAgent, Options};
use serde_json::{Value, json};

/// Long enough for any step on a busy machine; nothing waits for it to pass.
const AT_MOST: Duration = Duration::from_secs(60);

struct Stage {
    cluster: Cluster,
    agent: Option<NodeAgent>,
    folder: tempfile::TempDir,
}

impl Stage {
    async fn new() -> Self {
        let engine = Engine::open(longshore_engine::Options::default()).unwrap();
        let server = ApiServer::new(longshore_apiserver::Options {
            engine,
            token: None,
            node_logs: Arc::new(NoLogs),
            node_streams: Arc::new(NoStreams),
            faults: false,
        });
        let cluster = Cluster::from_service(server.service(), "default");
        let mut stage = Self {
            cluster,
            agent: None,
            folder: tempfile::tempdir().unwrap(),
        };
        stage.start().await;
        stage
    }

    async fn start(&mut self) {
        let options = Options {
            cluster: self.cluster.clone(),
            name: "here".to_owned(),
            data_dir: self.folder.path().to_owned(),
            path_prepend: None,
            access: None,
            log_limits: LogLimits::default(),
        };
        self.agent = Some(NodeAgent::start(options).await.unwrap());
    }

    /// Makes a pod and binds it.
    async fn run(&self, name: &str, spec: Value) {
        let metadata = json!({"name": name, "labels": {"app": "x"}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        let pods = self.cluster.pods().in_namespace("default").unwrap();
        pods.create(&pod).await.unwrap();
        pods.bind(name, "here").await.unwrap();
    }

    /// Waits until the pod satisfies `done`, and gives it; `Null` once it is gone.
    async fn until(&self, name: &str, done: impl Fn(&Value) -> bool) -> Value {
        let pods = self.cluster.pods().in_namespace("default").unwrap();
        let mut watch = pods.watch().await.unwrap();
        let mut last = match pods.find(name).await.unwrap() {
            Some(item) => item.raw().unwrap(),
            None => Value::Null,
        };
        while !done(&last) {
            let event = tokio::time::timeout(AT_MOST, watch.next(None)).await;
            let Ok(event) = event else {
                panic!("{name} did not come to it: {last:#}")
            };
            match event.unwrap() {
                WatchEvent::Added(item) | WatchEvent::Modified(item) if item.name() == name => {
                    last = item.raw().unwrap();
                }
                WatchEvent::Deleted(item) if item.name() == name => last = Value::Null,
                _ => {}
            }
        }
        last
    }

    async fn ended(&self, name: &str) -> Value {
        let ended = |pod: &Value| {
            ["Succeeded", "Failed"]
                .iter()
                .any(|p| pod["status"]["phase"] == *p)
        };
        self.until(name, ended).await
    }

    async fn log(&self, pod: &Value) -> String {
        self.read(query(pod)).await.unwrap()
    }

    async fn read(&self, query: LogQuery) -> Result<String, LogReadError> {
        let mut stream = std::pin::pin!(self.agent.as_ref().unwrap().logs().open(query).await?);
        let mut all = Vec::new();
        while let Some(chunk) = stream.next().await {
            all.extend_from_slice(&chunk.unwrap());
        }
        Ok(String::from_utf8(all).unwrap())
    }

    async fn events(&self, pod: &str) -> Vec<(String, String)> {
        let events = self
            .cluster
            .events()
            .in_namespace("default")
            .unwrap()
            .list()
            .await
            .unwrap();
        let events = events.items.iter().map(|item| item.raw().unwrap());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        events
            .filter(|event| event["involvedObject"]["name"] == pod)
            .map(|event| (text(&event["reason"]), text(&event["message"])))
            .collect()
    }

    /// Waits for an event, which comes after what it tells of.
    async fn event(&self, pod: &str, reason: &str) -> String {
        let search = async {
            loop {
                let found = self
                    .events(pod)
                    .await
                    .into_iter()
                    .find(|(known, _)| known == reason);
                if let Some((_, message)) = found {
                    return message;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(AT_MOST, search).await.unwrap()
    }

    async fn stop(mut self) {
        self.agent.take().unwrap().stop().await;
    }
}

fn query(pod: &Value) -> LogQuery {
    LogQuery {
        namespace: "default".to_owned(),
        pod: pod["metadata"]["name"].as_str().unwrap().to_owned(),
        uid: pod["metadata"]["uid"].as_str().unwrap().to_owned(),
        ..LogQuery::default()
    }
}

fn shell(script: &str) -> Value {
    json!({"name": "main", "image": "none", "command": ["sh", "-c", script]})
}

fn once(script: &str) -> Value {
    json!({"restartPolicy": "Never", "containers": [shell(script)]})
}

fn terminated(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]["state"]["terminated"]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_is_registered_and_a_pod_runs_to_its_end() {
    let stage = Stage::new().await;
    let node = stage
        .cluster
        .nodes()
        .fetch("here")
        .await
        .unwrap()
        .raw()
        .unwrap();
    assert_eq!(node["status"]["capacity"]["pods"], "250");
    let conditions = node["status"]["conditions"].as_array().unwrap();
    assert!(
        conditions
            .iter()
            .any(|one| one["type"] == "Ready" && one["status"] == "True")
    );

    stage
        .run("good", once("echo hello $POD_IP; echo $HOSTNAME >&2"))
        .await;
    let pod = stage.ended("good").await;
    assert_eq!(pod["status"]["phase"], "Succeeded");
    assert_eq!(terminated(&pod)["reason"], "Completed");
    let address = pod["status"]["podIP"].as_str().unwrap();
    assert!(address.starts_with("127."), "{address}");
    let mut lines: Vec<_> = stage.log(&pod).await.lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["good".to_owned(), format!("hello {address}")]);

    stage.run("bad", once("exit 3")).await;
    let pod = stage.ended("bad").await;
    assert_eq!(pod["status"]["phase"], "Failed");
    assert_eq!(
        (&terminated(&pod)["exitCode"], &terminated(&pod)["reason"]),
        (&json!(3), &json!("Error"))
    );
    assert_eq!(
        stage.event("bad", "Started").await,
        "Started container main"
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_start_says_why() {
    let stage = Stage::new().await;
    let container = json!({"name": "main", "image": "none", "command": ["nosuch"]});
    stage
        .run(
            "lost",
            json!({"restartPolicy": "Never", "containers": [container]}),
        )
        .await;
    let pod = stage.ended("lost").await;
    assert_eq!(terminated(&pod)["exitCode"], 128);
    assert_eq!(terminated(&pod)["reason"], "StartError");
    let message = terminated(&pod)["message"].as_str().unwrap();
    assert_eq!(
        message,
        "exec: \"nosuch\": executable file not found in $PATH"
    );
    assert!(stage.event("lost", "Failed").await.contains("nosuch"));

    stage
        .run(
            "image",
            json!({"containers": [{"name": "main", "image": "nginx"}]}),
        )
        .await;
    let reason =
        |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"].clone();
    stage
        .until("image", |pod| reason(pod) == "ErrImageNeedsCommand")
        .await;
    assert!(stage.event("image", "Failed").await.contains("not pulled"));

    stage.run("config", json!({"restartPolicy": "Never", "containers": [{
        "name": "main", "image": "none", "command": ["sh", "-c", "echo $KEY"],
        "env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "later", "key": "k"}}}]
    }]}))
    .await;
    let pod = stage
        .until("config", |pod| reason(pod) == "CreateContainerConfigError")
        .await;
    assert!(matches!(
        stage.read(query(&pod)).await,
        Err(LogReadError::NotReady(_))
    ));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "later"},
        "stringData": {"k": "found"}});
    stage
        .cluster
        .secrets()
        .in_namespace("default")
        .unwrap()
        .create(&secret)
        .await
        .unwrap();
    let pod = stage.ended("config").await;
    assert_eq!(stage.log(&pod).await, "found\n");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_init_containers_and_restarts() {
    let stage = Stage::new().await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"},
        "data": {"a": "from the map"}});
    stage
        .cluster
        .configmaps()
        .in_namespace("default")
        .unwrap()
        .create(&map)
        .await
        .unwrap();
    let mounts = json!([{"name": "shared", "mountPath": "/longshore-test/work"},
                        {"name": "map", "mountPath": "/etc/longshore-test"}]);
    let mut init = shell("cat /etc/longshore-test/a > /longshore-test/work/copy");
    init["name"] = json!("init");
    init["volumeMounts"] = mounts.clone();
    // Fails at first; the restart at once succeeds.
    let mut main =
        shell("cd /longshore-test/work; cat copy; mkdir again 2>/dev/null && exit 1; echo :second");
    main["volumeMounts"] = mounts;
    stage.run("files", json!({
        "restartPolicy": "OnFailure",
        "initContainers": [init],
        "containers": [main],
        "volumes": [{"name": "shared", "emptyDir": {}}, {"name": "map", "configMap": {"name": "map"}}],
    }))
    .await;
    let pod = stage.ended("files").await;
    assert_eq!(pod["status"]["phase"], "Succeeded", "{:#}", pod["status"]);
    let status = &pod["status"]["containerStatuses"][0];
    assert_eq!(status["restartCount"], 1);
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 1);
    let main = LogQuery {
        container: "main".to_owned(),
        ..query(&pod)
    };
    assert_eq!(
        stage.read(main.clone()).await.unwrap(),
        "from the map:second\n"
    );
    let previous = LogQuery {
        previous: true,
        ..main
    };
    assert_eq!(stage.read(previous).await.unwrap(), "from the map\n");
    assert!(!Path::new("/longshore-test").exists());
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_ends_gracefully_and_takes_everything_along() {
    let stage = Stage::new().await;
    let script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    stage.run("long", once(script)).await;
    let pod = stage
        .until("long", |pod| pod["status"]["phase"] == "Running")
        .await;
    let ready = &pod["status"]["conditions"].as_array().unwrap().clone();
    assert!(
        ready
            .iter()
            .any(|one| one["type"] == "Ready" && one["status"] == "True"),
        "{ready:?}"
    );
    let logs = stage.agent.as_ref().unwrap().logs();
    let follow = LogQuery {
        follow: true,
        ..query(&pod)
    };
    let mut stream = Box::pin(logs.open(follow).await.unwrap());
    assert_eq!(stream.next().await.unwrap().unwrap(), "ready\n");
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    pods.delete("long", &DeleteOptions::default())
        .await
        .unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "bye\n");
    assert!(stream.next().await.is_none());
    stage.until("long", Value::is_null).await;
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    let gone = async {
        while ["pods", "logs"]
            .iter()
            .any(|part| stage.folder.path().join(part).join(uid).exists())
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(AT_MOST, gone).await.unwrap();

    // Removed at once: killed, however it feels about it.
    stage
        .run("stubborn", once("trap '' TERM; echo $$; sleep 1000"))
        .await;
    stage
        .until("stubborn", |pod| pod["status"]["phase"] == "Running")
        .await;
    let now = DeleteOptions {
        grace_seconds: Some(0),
        ..DeleteOptions::default()
    };
    pods.delete("stubborn", &now).await.unwrap();
    stage.until("stubborn", Value::is_null).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_and_restarts_of_the_agent() {
    let mut stage = Stage::new().await;
    let mut spec = once("sleep 1000");
    spec["activeDeadlineSeconds"] = json!(1);
    stage.run("late", spec).await;
    let pod = stage.ended("late").await;
    assert_eq!(
        (&pod["status"]["phase"], &pod["status"]["reason"]),
        (&json!("Failed"), &json!("DeadlineExceeded"))
    );

    stage.run("never", once("echo one; sleep 1000")).await;
    let mut again = once("echo two; sleep 1000");
    again["restartPolicy"] = json!("Always");
    stage.run("always", again).await;
    for name in ["never", "always"] {
        let pod = stage
            .until(name, |pod| pod["status"]["phase"] == "Running")
            .await;
        // It runs; that it has said something may take a moment longer.
        while stage.log(&pod).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    stage.agent.take().unwrap().stop().await;
    stage.start().await;
    let pod = stage.ended("never").await;
    assert_eq!(terminated(&pod)["reason"], "ContainerStatusUnknown");
    assert_eq!(stage.log(&pod).await, "one\n");
    let restarted = |pod: &Value| {
        let status = &pod["status"]["containerStatuses"][0];
        status["restartCount"] == 1 && status["ready"] == true
    };
    stage.until("always", restarted).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_find_each_other_by_name() {
    let stage = Stage::new().await;
    let peer = |index: usize| {
        let other = 1 - index;
        let script = format!("until getent hosts w-{other}.w; do sleep 0.01; done");
        let mut spec = once(&script);
        spec["hostname"] = json!(format!("w-{index}"));
        spec["subdomain"] = json!("w");
        spec
    };
    stage.run("first", peer(0)).await;
    let first = stage
        .until("first", |pod| pod["status"]["phase"] == "Running")
        .await;
    let mut second = peer(1);
    // Both must live until the other has looked.
    second["containers"][0]["command"][2] = json!(
        "until getent hosts w-0.w.default.svc.cluster.local; do sleep 0.01; done; sleep 1000"
    );
    stage.run("second", second).await;
    let ended = stage.ended("first").await;
    let second = stage
        .until("second", |pod| pod["status"]["phase"] == "Running")
        .await;
    let log = stage.log(&ended).await;
    assert!(
        log.starts_with(second["status"]["podIP"].as_str().unwrap()),
        "{log}"
    );
    assert_ne!(first["status"]["podIP"], second["status"]["podIP"]);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_follow_their_sources() {
    let stage = Stage::new().await;
    let maps = stage.cluster.configmaps().in_namespace("default").unwrap();
    let map = |value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"},
            "data": {"a": value}})
    };
    maps.create(&map("first")).await.unwrap();
    let script = "for word in second third; do \
        until grep -q $word /etc/longshore-test/a; do sleep 0.01; done; echo $word; done";
    let mut main = shell(script);
    main["volumeMounts"] = json!([{"name": "map", "mountPath": "/etc/longshore-test"}]);
    stage
        .run(
            "reader",
            json!({
                "restartPolicy": "Never",
                "containers": [main],
                "volumes": [{"name": "map", "configMap": {"name": "map"}}],
            }),
        )
        .await;
    let pod = stage
        .until("reader", |pod| pod["status"]["phase"] == "Running")
        .await;
    let logs = stage.agent.as_ref().unwrap().logs();
    let follow = LogQuery {
        follow: true,
        ..query(&pod)
    };
    let mut stream = Box::pin(logs.open(follow).await.unwrap());
    for word in ["second", "third"] {
        maps.replace("map", &map(word)).await.unwrap();
        let line = tokio::time::timeout(AT_MOST, stream.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert_eq!(line, format!("{word}\n"));
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_pods_leave_nothing_behind() {
    let stage = Stage::new().await;
    for index in 0..100 {
        stage.run(&format!("pod-{index}"), once("true")).await;
    }
    for index in 0..100 {
        let pod = stage.ended(&format!("pod-{index}")).await;
        assert_eq!(pod["status"]["phase"], "Succeeded");
    }
    stage.stop().await;
}
