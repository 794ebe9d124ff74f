//! Point 45: logs of all containers.

use futures::TryStreamExt;
use longshore::{
    Cluster,
    client::{LogLine, LogOptions, Patch, until},
};
use longshore_conformance::Server;
use serde_json::json;

use crate::{
    common::{TIMEOUT, invalid},
    sessions::lacks_a_node,
};

fn shown(lines: &[LogLine]) -> Vec<String> {
    let line = |line: &LogLine| format!("{} {}", line.container, line.line);
    lines.iter().map(line).collect()
}

#[tokio::test]
async fn point_45_logs_of_all_containers_in_the_order_of_their_start() {
    if lacks_a_node().await {
        return;
    }
    let server = Server::start().await;
    let kubeconfig = server.kubeconfig();
    let cluster = Cluster::from_kubeconfig(Some(&kubeconfig), None).await;
    let pods = cluster.unwrap().pods().in_namespace("default").unwrap();
    let container = |name: &str, script: &str| {
        let command = ["sh", "-c", script];
        json!({"name": name, "image": "any", "command": command})
    };
    let mut sidecar = container("proxy", "echo ready; sleep 1000");
    sidecar["restartPolicy"] = "Always".into();
    let spec = json!({
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
        "initContainers": [container("prepare", "echo one; echo two"), sidecar],
        "containers": [
            container("main", "echo three; printf four"),
            container("other", "echo five"),
        ],
    });
    let pod = json!({"metadata": {"name": "talker"}, "spec": spec});
    pods.create(&pod).await.unwrap();

    // Follows from before the start of the first container until all have ended.
    let follow = LogOptions {
        follow: true,
        ..LogOptions::default()
    };
    let followed = pods.logs_all("talker", &follow).await.unwrap();
    let followed = tokio::time::timeout(TIMEOUT, followed.try_collect::<Vec<_>>());
    let mut followed = shown(&followed.await.unwrap().unwrap());
    followed.sort();
    let expected = [
        "prepare one",
        "prepare two",
        "proxy ready",
        "main three",
        "main four",
        "other five",
    ];
    let mut sorted = expected;
    sorted.sort_unstable();
    assert_eq!(followed, sorted);

    let pod = pods.wait("talker", until::finished, TIMEOUT).await.unwrap();
    let all = pod.logs_all(&LogOptions::default()).await.unwrap();
    assert_eq!(shown(&all.try_collect::<Vec<_>>().await.unwrap()), expected);
    let last = LogOptions {
        tail_lines: Some(1),
        ..LogOptions::default()
    };
    let last = pod.logs_all(&last).await.unwrap();
    assert_eq!(
        shown(&last.try_collect::<Vec<_>>().await.unwrap()),
        ["prepare two", "proxy ready", "main four", "other five"]
    );

    let one = LogOptions {
        container: Some("main".to_owned()),
        ..LogOptions::default()
    };
    let refused = invalid(pod.logs_all(&one).await.map(|_| ()));
    assert!(refused.contains("leave it out"), "{refused}");
    let previous = LogOptions {
        previous: true,
        ..LogOptions::default()
    };
    let none = pod.logs_all(&previous).await.map(|_| ()).unwrap_err();
    assert_eq!(none.code(), Some(400), "{none}");
    let gone = pods.logs_all("none", &follow).await.map(|_| ());
    assert!(gone.unwrap_err().is_not_found());
    server.stop().await;
}

#[tokio::test]
async fn point_45_a_container_that_has_not_started_has_no_lines() {
    if lacks_a_node().await {
        return;
    }
    let server = Server::start().await;
    let kubeconfig = server.kubeconfig();
    let cluster = Cluster::from_kubeconfig(Some(&kubeconfig), None).await;
    let pods = cluster.unwrap().pods().in_namespace("default").unwrap();
    let container = |name: &str, script: &str| {
        let command = ["sh", "-c", script];
        json!({"name": name, "image": "any", "command": command})
    };
    let spec = json!({
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
        "initContainers": [container("prepare", "echo one; sleep 1000")],
        "containers": [container("main", "echo two")],
    });
    let pod = json!({"metadata": {"name": "waiter"}, "spec": spec});
    pods.create(&pod).await.unwrap();
    let runs = |pod: &longshore::client::PodItem| {
        let containers = pod.init_containers().unwrap_or_default();
        let state = containers.first().and_then(|first| first.state().ok());
        state.is_some_and(|state| state.running())
    };
    let pod = pods.wait("waiter", runs, TIMEOUT).await.unwrap();
    let lines = async {
        loop {
            let all = pod.logs_all(&LogOptions::default()).await.unwrap();
            let lines = shown(&all.try_collect::<Vec<_>>().await.unwrap());
            if !lines.is_empty() {
                return lines;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let lines = tokio::time::timeout(TIMEOUT, lines).await.unwrap();
    assert_eq!(lines, ["prepare one"]);
    server.stop().await;
}

#[tokio::test]
async fn point_45_a_pod_without_a_node_is_followed_from_its_start() {
    if lacks_a_node().await {
        return;
    }
    let server = Server::start().await;
    let kubeconfig = server.kubeconfig();
    let cluster = Cluster::from_kubeconfig(Some(&kubeconfig), None).await;
    let pods = cluster.unwrap().pods().in_namespace("default").unwrap();
    let command = ["sh", "-c", "echo one"];
    let spec = json!({
        "restartPolicy": "Never", "schedulingGates": [{"name": "example.com/wait"}],
        "containers": [{"name": "main", "image": "any", "command": command}],
    });
    let pod = json!({"metadata": {"name": "gated"}, "spec": spec});
    pods.create(&pod).await.unwrap();
    let follow = LogOptions {
        follow: true,
        ..LogOptions::default()
    };
    let followed = pods.logs_all("gated", &follow).await.unwrap();
    let followed = followed.try_collect::<Vec<_>>();
    let ungate = async {
        // The first request finds a pod without a node.
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        let patch = Patch::merge(json!({"spec": {"schedulingGates": null}}));
        pods.patch("gated", &patch).await.unwrap();
    };
    let both = async { tokio::join!(followed, ungate) };
    let (followed, ()) = tokio::time::timeout(TIMEOUT, both).await.unwrap();
    assert_eq!(shown(&followed.unwrap()), ["main one"]);
    server.stop().await;
}
