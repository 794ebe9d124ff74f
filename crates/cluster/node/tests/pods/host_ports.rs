//! Ports of the node that pods request.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use longshore_model::network::NODE_ADDRESS;
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
};

use super::{helpers::has_namespaces, *};

/// Servers that send the name of the pod, by TCP and UDP.
const ANSWERS: &str = "\
import os, socket, sys, threading
port = int(sys.argv[1])
name = os.environ['HOSTNAME'].encode()
tcp = socket.create_server(('0.0.0.0', port))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(('0.0.0.0', port))
def packets():
    while True:
        _, client = udp.recvfrom(100)
        udp.sendto(name, client)
threading.Thread(target=packets, daemon=True).start()
print('ready', flush=True)
while True:
    connection, _ = tcp.accept()
    connection.sendall(name)
    connection.close()";

fn answers(port: u16, ports: Value) -> Value {
    let command = json!(["/usr/bin/python3", "-c", ANSWERS, port.to_string()]);
    let container = json!({"name": "main", "image": "none", "command": command, "ports": ports});
    json!({"restartPolicy": "Never", "containers": [container]})
}

async fn is_ready(stage: &Stage, name: &str) {
    let pod = stage
        .until(name, |pod| pod["status"]["phase"] == "Running")
        .await;
    let ready = async {
        while !stage.log(&pod).await.contains("ready") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, ready).await.unwrap();
}

/// A port of TCP and UDP that is free at this moment.
async fn free_port() -> u16 {
    loop {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = tcp.local_addr().unwrap();
        if UdpSocket::bind(address).is_ok() {
            return address.port();
        }
    }
}

async fn ask(address: SocketAddr) -> std::io::Result<String> {
    let mut text = String::new();
    let mut client = TcpStream::connect(address).await?;
    client.read_to_string(&mut text).await?;
    Ok(text)
}

async fn delete(stage: &Stage, name: &str) {
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    pods.delete(name, &DeleteOptions::default()).await.unwrap();
    stage.until(name, Value::is_null).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_of_the_node_are_forwarded_to_pods_while_they_run() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let (own, port) = (free_port().await, free_port().await);
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let ports =
        |protocol: &str| json!([{"containerPort": own, "hostPort": port, "protocol": protocol}]);
    stage.run("tcp", answers(own, ports("TCP"))).await;
    stage.run("udp", answers(own, ports("UDP"))).await;
    is_ready(&stage, "tcp").await;
    is_ready(&stage, "udp").await;
    assert_eq!(ask(at).await.unwrap(), "tcp");
    let at_node = SocketAddr::from((NODE_ADDRESS, port));
    assert_eq!(ask(at_node).await.unwrap(), "tcp");
    let answer = tokio::task::spawn_blocking(move || {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        socket.send_to(b"?", at).unwrap();
        let mut answer = [0; 100];
        let length = socket.recv(&mut answer).unwrap();
        answer[..length].to_vec()
    });
    assert_eq!(answer.await.unwrap(), b"udp");

    // The next pod may use the port as soon as the pod is gone.
    delete(&stage, "tcp").await;
    TcpListener::bind(at).await.unwrap();
    stage.run("next", answers(own, ports("TCP"))).await;
    is_ready(&stage, "next").await;
    assert_eq!(ask(at).await.unwrap(), "next");
    // The node's address and the machine's address have separate ports.
    let only = |ip: &str| json!([{"containerPort": own, "hostPort": port, "hostIP": ip}]);
    delete(&stage, "next").await;
    stage.run("local", answers(own, only("127.0.0.1"))).await;
    let address = NODE_ADDRESS.to_string();
    stage.run("node", answers(own, only(&address))).await;
    is_ready(&stage, "local").await;
    is_ready(&stage, "node").await;
    assert_eq!(ask(at).await.unwrap(), "local");
    assert_eq!(ask(at_node).await.unwrap(), "node");
    stage.stop().await;
    assert!(ask(at).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_requests_the_port_of_another_is_rejected() {
    let stage = Stage::new().await;
    let port = free_port().await;
    let waits = |ip: &str| {
        let mut spec = run_once("sleep 600");
        spec["terminationGracePeriodSeconds"] = 0.into();
        spec["containers"][0]["ports"] =
            json!([{"containerPort": 1, "hostPort": port, "hostIP": ip}]);
        spec
    };
    let running = |pod: &Value| pod["status"]["phase"] == "Running";
    stage.run("first", waits("127.0.0.1")).await;
    stage.until("first", running).await;
    stage.run("other", waits("127.0.0.2")).await;
    stage.until("other", running).await;
    stage.run("second", waits("0.0.0.0")).await;
    let pod = stage.ended("second").await;
    let reason = "Predicate NodePorts failed: node(s) didn't have free ports for the requested \
                  pod ports";
    assert_eq!(stage.event("second", "NodePorts").await, reason);
    let status = &pod["status"];
    assert_eq!(status["phase"], "Failed");
    assert_eq!(status["reason"], "NodePorts");
    assert_eq!(status["message"], format!("Pod was rejected: {reason}"));
    assert!(status["containerStatuses"].is_null(), "{status}");
    assert!(status["startTime"].is_string(), "{status}");
    delete(&stage, "second").await;
    delete(&stage, "other").await;
    delete(&stage, "first").await;
    stage.run("third", waits("0.0.0.0")).await;
    stage.until("third", running).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_sets_an_unsafe_kernel_parameter_is_rejected() {
    let stage = Stage::new().await;
    let mut spec = run_once("true");
    spec["securityContext"] = json!({"sysctls": [{"name": "kernel.msgmax", "value": "1"}]});
    stage.run("p", spec).await;
    let pod = stage.ended("p").await;
    assert_eq!(pod["status"]["phase"], "Failed");
    assert_eq!(pod["status"]["reason"], "SysctlForbidden");
    assert_eq!(
        pod["status"]["message"],
        "Pod was rejected: forbidden sysctl: \"kernel.msgmax\" not allowlisted"
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_cannot_be_opened_is_reported_and_opened_later() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let at = taken.local_addr().unwrap();
    let own = free_port().await;
    let ports = json!([{"containerPort": own, "hostPort": at.port()}]);
    stage.run("p", answers(own, ports)).await;
    is_ready(&stage, "p").await;
    let message = stage.event("p", "PortNotForwarded").await;
    let remedy = format!(
        "another program uses it: end the program, or change hostPort {}",
        at.port()
    );
    assert!(message.ends_with(&remedy), "{message}");
    drop(taken);
    let opened = async {
        loop {
            match ask(at).await {
                Ok(answer) if !answer.is_empty() => return answer,
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    assert_eq!(tokio::time::timeout(TIMEOUT, opened).await.unwrap(), "p");
    stage.stop().await;
}
