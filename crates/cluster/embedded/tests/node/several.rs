//! Several nodes on one machine.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use futures::TryStreamExt as _;
use longshore_client::{Cluster, Item, LogOptions, View, kinds};
use longshore_embedded::{Clock, EmbeddedCluster, Error, MAX_NODES, Options};
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt as _, net::TcpStream};

const TIMEOUT: Duration = Duration::from_secs(60);

async fn start(nodes: u8) -> EmbeddedCluster {
    let options = Options {
        nodes,
        ..Options::default()
    };
    EmbeddedCluster::start(options).await.unwrap()
}

/// Sends the name of the server's node to each client.
const SERVER: &str = r#"
import os, socket
server = socket.create_server(("0.0.0.0", 8080))
print(os.environ["NODE"], os.environ["HOST"], flush=True)
while True:
    client, _ = server.accept()
    client.sendall(os.environ["NODE"].encode())
    client.close()
"#;
const HOST_PORT: u16 = 18_734;

fn daemon_set() -> Value {
    let command = ["python3", "-c", SERVER];
    let container = json!({"name": "main", "image": "any", "command": command,
        "env": [
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
        ],
        "ports": [{"containerPort": 8080, "hostPort": HOST_PORT}]});
    json!({"metadata": {"name": "agents"}, "spec": {
        "selector": {"matchLabels": {"app": "agents"}},
        "template": {"metadata": {"labels": {"app": "agents"}}, "spec": {
            "terminationGracePeriodSeconds": 1, "containers": [container]}},
    }})
}

/// Returns the data that the server at an address sends, after it listens.
async fn received(address: SocketAddr) -> String {
    let connect = async {
        loop {
            if let Ok(mut stream) = TcpStream::connect(address).await {
                let mut text = String::new();
                if stream.read_to_string(&mut text).await.is_ok() && !text.is_empty() {
                    return text;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, connect).await.unwrap()
}

/// Returns the log of a pod, after it has a line: the node copies it from a pipe.
async fn logged(pods: &View<kinds::Pod>, name: &str) -> String {
    let line = async {
        loop {
            let log = pods.logs(name, &LogOptions::default()).await.unwrap();
            let log: Vec<_> = log.try_collect().await.unwrap();
            let log = String::from_utf8(log.concat()).unwrap();
            if log.ends_with('\n') {
                return log;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, line).await.unwrap()
}

/// Waits until this many pods of the DaemonSet are ready, and returns them.
async fn ready_pods(cluster: &Cluster, count: usize) -> Vec<Item<kinds::Pod>> {
    let sets = cluster.daemonsets().in_namespace("default").unwrap();
    let ready = |set: &Item<_>| {
        let status = &set.raw().unwrap()["status"];
        status["numberReady"] == count && status["desiredNumberScheduled"] == count
    };
    sets.wait("agents", ready, TIMEOUT).await.unwrap();
    let pods = cluster.pods().in_namespace("default").unwrap();
    pods.list().await.unwrap().items
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_set_has_a_pod_on_each_node_with_its_address_and_ports() {
    let embedded = start(3).await;
    let cluster = embedded.cluster();
    let sets = cluster.daemonsets().in_namespace("default").unwrap();
    sets.create(&daemon_set()).await.unwrap();
    let pods = ready_pods(&cluster, 3).await;
    let view = cluster.pods().in_namespace("default").unwrap();
    let mut seen = BTreeSet::new();
    for pod in &pods {
        let raw = pod.raw().unwrap();
        let text = |pointer: &str| raw.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        let (node, host) = (text("/spec/nodeName"), text("/status/hostIP"));
        let address = (host.parse::<Ipv4Addr>().unwrap(), HOST_PORT).into();
        assert_eq!(received(address).await, node);
        assert_eq!(logged(&view, pod.name()).await, format!("{node} {host}\n"));
        let events = cluster.events().in_namespace("default").unwrap();
        let events = events.list().await.unwrap().items;
        let started = events.iter().map(|event| event.raw().unwrap());
        let mut started = started.filter(|event| event["involvedObject"]["name"] == pod.name());
        assert!(
            started.any(|event| event["source"]["host"] == *node && event["reason"] == "Started")
        );
        seen.insert((node, host, text("/status/podIP")));
    }
    let nodes: Vec<(&str, &str)> = seen
        .iter()
        .map(|(n, h, _)| (n.as_str(), h.as_str()))
        .collect();
    assert_eq!(
        nodes,
        [
            ("longshore", "127.7.0.1"),
            ("longshore-2", "127.7.0.2"),
            ("longshore-3", "127.7.0.3"),
        ]
    );
    let addresses: BTreeSet<&String> = seen.iter().map(|(_, _, own)| own).collect();
    assert_eq!(addresses.len(), 3);
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_a_restart_omits_are_removed_with_their_pods() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual("2026-01-01T00:00:00Z".parse().unwrap());
    let options = |nodes: u8, folder: &Path| Options {
        clock: clock.clone(),
        ephemeral: false,
        data_dir: Some(folder.to_owned()),
        nodes,
        ..Options::default()
    };
    let embedded = EmbeddedCluster::start(options(2, folder.path()))
        .await
        .unwrap();
    let cluster = embedded.cluster();
    // A node that another program registered is kept.
    cluster
        .nodes()
        .create(&json!({"metadata": {"name": "longshore-9"}}))
        .await
        .unwrap();
    let pods = cluster.pods().in_namespace("default").unwrap();
    for (name, node) in [("first", "longshore"), ("second", "longshore-2")] {
        let container = json!({"name": "main", "image": "any", "command": ["sleep", "1000"]});
        let spec = json!({"nodeName": node, "containers": [container]});
        pods.create(&json!({"metadata": {"name": name}, "spec": spec}))
            .await
            .unwrap();
        let runs = |pod: &Item<_>| pod.raw().unwrap()["status"]["phase"] == "Running";
        pods.wait(name, runs, TIMEOUT).await.unwrap();
    }
    // The store is closed with the last client.
    drop((cluster, pods));
    embedded.stop().await;

    let embedded = EmbeddedCluster::start(options(1, folder.path()))
        .await
        .unwrap();
    let cluster = embedded.cluster();
    let names = |items: Vec<Item<kinds::Node>>| {
        let names = items.iter().map(|item| item.name().to_owned());
        names.collect::<BTreeSet<String>>()
    };
    let nodes = names(cluster.nodes().list().await.unwrap().items);
    assert_eq!(
        nodes,
        ["longshore", "longshore-9"].map(str::to_owned).into()
    );
    let pods = cluster.pods().in_namespace("default").unwrap();
    // The collector waits before it deletes pods of missing nodes.
    let gone = pods.wait_gone("second", TIMEOUT);
    let time = async {
        loop {
            embedded
                .clock()
                .advance(Duration::from_secs(20))
                .await
                .unwrap();
            embedded.clock().settle(TIMEOUT).await.unwrap();
        }
    };
    tokio::select! {
        gone = gone => gone.unwrap(),
        () = time => {}
    }
    assert!(pods.find("first").await.unwrap().is_some());
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_usage_of_each_node_is_that_of_the_machine() {
    let embedded = start(2).await;
    let proxy = embedded.cluster().proxy();
    let usage = proxy
        .get("/apis/metrics.k8s.io/v1beta1/nodes", &[])
        .await
        .unwrap();
    let items = usage["items"].as_array().unwrap();
    let names: Vec<&str> = items
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["longshore", "longshore-2"]);
    assert_eq!(items[0]["usage"], items[1]["usage"]);
    let path = "/api/v1/nodes/longshore-2/proxy/stats/summary";
    let summary = proxy.get(path, &[]).await.unwrap();
    assert_eq!(summary["node"]["nodeName"], "longshore-2");
    embedded.stop().await;
}

#[tokio::test]
async fn too_many_nodes_are_an_error() {
    let options = Options {
        nodes: MAX_NODES + 1,
        ..Options::default()
    };
    let error = EmbeddedCluster::start(options).await.err().unwrap();
    assert!(matches!(error, Error::TooManyNodes(101)));
    assert_eq!(
        error.to_string(),
        "an embedded cluster has at most 100 nodes, not 101"
    );
}
