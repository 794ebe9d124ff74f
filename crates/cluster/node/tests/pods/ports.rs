//! Ports of pods, which share the machine's network.

use std::net::{Ipv4Addr, TcpListener};

use longshore_node_api::SessionError;

use super::{helpers::has_namespaces, *};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const SERVES: &str = "\
import socket, sys, time
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print('ready', flush=True)
time.sleep(600)";

fn serves(address: &str, port: u16) -> Value {
    let command = json!(["/usr/bin/python3", "-c", SERVES, address, port.to_string()]);
    let container = json!({
        "name": "main", "image": "none", "command": command,
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
    });
    json!({"restartPolicy": "Never", "containers": [container]})
}

async fn until_ready(stage: &Stage, name: &str) -> Value {
    let running = |pod: &Value| pod["status"]["phase"] == "Running";
    let pod = stage.until(name, running).await;
    let ready = async {
        while !stage.log(&pod).await.contains("ready") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, ready).await.unwrap();
    pod
}

/// A port that is free at this moment.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Connects to a server that sends its name, like the one of `answers`.
async fn answer(address: &str, port: u16) -> String {
    let mut stream = tokio::net::TcpStream::connect((address, port))
        .await
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

const ANSWERS: &str = "\
import os, socket, sys
family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
server = socket.create_server((sys.argv[1], int(sys.argv[2])), family=family,
                              dualstack_ipv6=sys.argv[1] == '::')
print('ready', flush=True)
# The pod reaches its own server at localhost, and the machine's at another port.
def ask(port):
    with socket.create_connection(('127.0.0.1', port)) as client:
        return client.recv(100).decode()
if os.fork() == 0:
    print(ask(int(sys.argv[2])), ask(int(sys.argv[3])), flush=True)
    sys.exit()
while True:
    connection, _ = server.accept()
    connection.sendall(os.environ['HOSTNAME'].encode())
    connection.close()";

/// Listens for IPv4 and IPv6 separately, as nginx does, and connects to both.
const LISTENS_TWICE: &str = "\
import errno, socket, sys, time
port = int(sys.argv[1])
servers = [socket.create_server(('', port)),
           socket.create_server(('::', port), family=socket.AF_INET6)]
for address, server in zip(['127.0.0.1', '::1'], servers):
    with socket.create_connection((address, port)):
        print(server.accept()[0].getsockname()[0], flush=True)
try:
    socket.create_server(('::', port), family=socket.AF_INET6)
except OSError as error:
    print(errno.errorcode[error.errno], flush=True)
print('ready', flush=True)
time.sleep(600)";

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_two_pods_may_listen_for_ipv6_only() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let port = free_port().to_string();
    for name in ["a", "b"] {
        let command = json!(["/usr/bin/python3", "-c", LISTENS_TWICE, port]);
        let container = json!({"name": "main", "image": "none", "command": command});
        let spec = json!({"restartPolicy": "Never", "containers": [container]});
        stage.run(name, spec).await;
        let pod = until_ready(&stage, name).await;
        let address = pod["status"]["podIP"].as_str().unwrap();
        let expected = format!("{address}\n::1\nEADDRINUSE\nready\n");
        assert_eq!(stage.log(&pod).await, expected);
    }
    stage.stop().await;
}

/// Servers of several pods use the same port, regardless of the addresses on which they listen.
#[tokio::test(flavor = "multi_thread")]
async fn the_servers_of_two_pods_may_use_one_port() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    // A server of the machine.
    let machine = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .unwrap();
    let outside = machine.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = machine.accept().await.unwrap();
            stream.write_all(b"machine").await.unwrap();
        }
    });
    let port = free_port();
    for (name, on) in [
        ("a", "0.0.0.0"),
        ("b", "0.0.0.0"),
        ("c", "127.0.0.1"),
        ("d", "::"),
    ] {
        let command = json!([
            "/usr/bin/python3",
            "-c",
            ANSWERS,
            on,
            port.to_string(),
            outside.to_string()
        ]);
        let container = json!({"name": "main", "image": "none", "command": command});
        let spec = json!({"restartPolicy": "Never", "containers": [container]});
        stage.run(name, spec).await;
    }
    for name in ["a", "b", "c", "d"] {
        let pod = until_ready(&stage, name).await;
        let address = pod["status"]["podIP"].as_str().unwrap();
        assert_eq!(answer(address, port).await, name);
        let inside = format!("{name} machine");
        let found = async {
            while !stage.log(&pod).await.contains(&inside) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let found = tokio::time::timeout(TIMEOUT, found).await;
        assert!(found.is_ok(), "{}", stage.log(&pod).await);
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_conflict_is_reported_with_the_remedy() {
    let stage = Stage::new().await;
    let port = free_port();
    let on_machine = |port| {
        let mut spec = serves("0.0.0.0", port);
        spec["hostNetwork"] = json!(true);
        spec
    };
    stage.run("first", on_machine(port)).await;
    until_ready(&stage, "first").await;
    stage.run("second", on_machine(port)).await;
    let pod = stage.ended("second").await;
    assert_eq!(pod["status"]["phase"], "Failed", "{pod:#}");
    assert_eq!(
        stage.event("second", "AddressInUse").await,
        "container main could not bind its port: with hostNetwork, a pod uses the ports of this \
         machine; use another port, or omit hostNetwork"
    );
    // The remedy works.
    let port = free_port();
    for name in ["third", "fourth"] {
        stage.run(name, serves("$(POD_IP)", port)).await;
        until_ready(&stage, name).await;
    }
    // Other failures do not get this message.
    stage.run("fifth", run_once("echo in use; exit 1")).await;
    stage.ended("fifth").await;
    stage.event("fifth", "Started").await;
    let events = stage.events("fifth").await;
    assert!(events.iter().all(|(reason, _)| reason != "AddressInUse"));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_forward_connects_to_the_pods_own_address() {
    let stage = Stage::new().await;
    let sessions = stage.agent.as_ref().unwrap().sessions();
    let port = free_port();
    let servers = [
        ("own", "$(POD_IP)"),
        ("all", "0.0.0.0"),
        ("local", "127.0.0.1"),
    ];
    // Without its own ports, a pod's localhost is the machine's.
    let count = if has_namespaces(&stage).await { 3 } else { 2 };
    for (name, on) in servers.into_iter().take(count) {
        stage.run(name, serves(on, port)).await;
        let pod = until_ready(&stage, name).await;
        sessions.connect(main_container(&pod), port).await.unwrap();
        let address = pod["status"]["podIP"].as_str().unwrap();
        let other = free_port();
        let Err(SessionError::Failed(message)) =
            sessions.connect(main_container(&pod), other).await
        else {
            panic!("connected")
        };
        assert_eq!(
            message,
            format!(
                "failed to connect to {address}:{other}: connect: connection refused: nothing \
                 listens there; the pod's servers must listen on $POD_IP ({address}) or on all \
                 addresses (0.0.0.0)"
            )
        );
        let now = DeleteOptions {
            grace_seconds: Some(0),
            ..DeleteOptions::default()
        };
        let pods = stage.cluster.pods().in_namespace("default").unwrap();
        pods.delete(name, &now).await.unwrap();
        stage.until(name, Value::is_null).await;
    }
    stage.stop().await;
}
