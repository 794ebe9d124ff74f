//! Ports of pods, which share the machine's network.

use std::net::{Ipv4Addr, TcpListener};

use longshore_node_api::SessionError;

use super::*;

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

#[tokio::test(flavor = "multi_thread")]
async fn a_port_conflict_is_reported_with_the_remedy() {
    let stage = Stage::new().await;
    let port = free_port();
    stage.run("first", serves("0.0.0.0", port)).await;
    until_ready(&stage, "first").await;
    stage.run("second", serves("0.0.0.0", port)).await;
    let pod = stage.ended("second").await;
    assert_eq!(pod["status"]["phase"], "Failed", "{pod:#}");
    let address = pod["status"]["podIP"].as_str().unwrap();
    assert_eq!(
        stage.event("second", "AddressInUse").await,
        format!(
            "container main could not bind its port: pods share this machine's network; \
             bind to the pod's own address ($POD_IP, {address}) instead of 0.0.0.0"
        )
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
    let port = free_port();
    stage.run("hidden", serves("127.0.0.1", port)).await;
    let hidden = until_ready(&stage, "hidden").await;
    let sessions = stage.agent.as_ref().unwrap().sessions();
    let address = hidden["status"]["podIP"].as_str().unwrap();
    let Err(SessionError::Failed(message)) = sessions.connect(main_container(&hidden), port).await
    else {
        panic!("connected")
    };
    assert_eq!(
        message,
        format!(
            "failed to connect to {address}:{port}: connect: connection refused: nothing \
             listens there; pods share this machine's network, so a server must listen on \
             its pod's own address ($POD_IP, {address}) or on all addresses (0.0.0.0), \
             not on 127.0.0.1"
        )
    );
    let port = free_port();
    for (name, on) in [("own", "$(POD_IP)"), ("all", "0.0.0.0")] {
        stage.run(name, serves(on, port)).await;
        let pod = until_ready(&stage, name).await;
        sessions.connect(main_container(&pod), port).await.unwrap();
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
