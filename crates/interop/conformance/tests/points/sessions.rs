//! Point 45: logs, exec, attach, port-forward.

use std::time::Duration;

use futures::TryStreamExt;
use longshore::{
    Cluster, Item,
    client::{ExecOptions, LogOptions, kinds::Pod},
};
use longshore_conformance::{ApiTest, Server};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::common::{TIMEOUT, invalid};

/// A cluster with a node, and a pod that runs on it.
pub(crate) struct RunningPod {
    pub(crate) server: Server,
    pub(crate) pod: Item<Pod>,
}

impl RunningPod {
    pub(crate) async fn start(container: serde_json::Value) -> Self {
        let server = Server::start().await;
        let cluster = Cluster::from_kubeconfig(Some(&server.kubeconfig()), None)
            .await
            .unwrap();
        let pods = cluster.pods().in_namespace("default").unwrap();
        let mut container = container;
        container["name"] = "main".into();
        container["image"] = "any".into();
        let spec = json!({
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        });
        pods.create(&json!({"metadata": {"name": "box"}, "spec": spec}))
            .await
            .unwrap();
        let runs = |pod: &Item<Pod>| pod.phase().is_ok_and(|phase| phase.as_str() == "Running");
        let pod = pods.wait("box", runs, TIMEOUT).await.unwrap();
        Self { server, pod }
    }

    pub(crate) async fn sleeping() -> Self {
        Self::start(json!({"command": ["sleep", "1000"]})).await
    }
}

/// Returns true if the server lacks a node that runs pods.
pub(crate) async fn lacks_a_node() -> bool {
    ApiTest::start().await.skip_on_real("a node that runs pods")
}

#[tokio::test]
async fn point_45_logs_are_read_and_followed() {
    if lacks_a_node().await {
        return;
    }
    let script = "echo one; echo two; sleep 0.2; echo three; sleep 1000";
    let running = RunningPod::start(json!({"command": ["sh", "-c", script]})).await;
    let follow = LogOptions {
        follow: true,
        ..LogOptions::default()
    };
    let mut log = std::pin::pin!(running.pod.logs(&follow).await.unwrap());
    let mut text = Vec::new();
    while !text.ends_with(b"three\n") {
        let piece = tokio::time::timeout(TIMEOUT, log.try_next()).await.unwrap();
        text.extend_from_slice(&piece.unwrap().unwrap());
    }
    assert_eq!(text, b"one\ntwo\nthree\n");
    let last = LogOptions {
        tail_lines: Some(1),
        ..LogOptions::default()
    };
    let pieces: Vec<_> = running
        .pod
        .logs(&last)
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    assert_eq!(pieces.concat(), b"three\n");
    running.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn point_45_commands_have_streams_and_an_exit_code() {
    if lacks_a_node().await {
        return;
    }
    let running = RunningPod::sleeping().await;
    let output = running
        .pod
        .output(["sh", "-c", "echo out; echo err >&2; exit 3"], None)
        .await
        .unwrap();
    assert_eq!(
        (output.code, &output.stdout[..], &output.stderr[..]),
        (3, &b"out\n"[..], &b"err\n"[..])
    );
    // More than fits any buffer, in both directions concurrently.
    let options = ExecOptions {
        stdin: true,
        ..ExecOptions::default()
    };
    let mut session = running.pod.exec(["cat"], &options).await.unwrap();
    let (mut input, mut output) = (session.stdin().unwrap(), session.stdout().unwrap());
    let sent: Vec<u8> = (0..8_000_000_u32).map(|n| (n % 251) as u8).collect();
    let expected = sent.clone();
    let sending = tokio::spawn(async move {
        input.write_all(&sent).await.unwrap();
        input.shutdown().await.unwrap();
    });
    let mut got = Vec::new();
    tokio::time::timeout(TIMEOUT, output.read_to_end(&mut got))
        .await
        .unwrap()
        .unwrap();
    assert!(got == expected, "{} bytes of {}", got.len(), expected.len());
    sending.await.unwrap();
    assert_eq!(session.wait().await.unwrap(), 0);
    running.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn point_45_terminals_have_a_size() {
    if lacks_a_node().await {
        return;
    }
    let running = RunningPod::sleeping().await;
    let options = ExecOptions {
        stdin: true,
        tty: true,
        ..ExecOptions::default()
    };
    let mut session = running.pod.exec(["sh"], &options).await.unwrap();
    assert!(session.stderr().is_none());
    session.resize(101, 37).await.unwrap();
    let (mut input, mut output) = (session.stdin().unwrap(), session.stdout().unwrap());
    input
        .write_all(b"until test \"$(stty size)\" = '37 101'; do sleep 0.01; done; exit 5\n")
        .await
        .unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).await.unwrap();
    assert_eq!(session.wait().await.unwrap(), 5, "{text}");
    running.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn point_45_attach_connects_to_a_container() {
    if lacks_a_node().await {
        return;
    }
    let script = "while read line; do echo got $line; done; exit 4";
    let container = json!({"command": ["sh", "-c", script], "stdin": true, "stdinOnce": true});
    let running = RunningPod::start(container).await;
    let options = ExecOptions {
        stdin: true,
        ..ExecOptions::default()
    };
    let mut session = running.pod.attach(&options).await.unwrap();
    let (mut input, mut output) = (session.stdin().unwrap(), session.stdout().unwrap());
    input.write_all(b"this\n").await.unwrap();
    let mut line = [0; 9];
    output.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"got this\n");
    drop(input);
    let ended = |pod: &Item<Pod>| pod.phase().is_ok_and(|phase| phase.is_final());
    // With stdinOnce, the end of the first session closes the standard input.
    running.pod.wait(ended, TIMEOUT).await.unwrap();
    running.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn point_45_invalid_commands_are_reported() {
    let fixture = crate::common::Fixture::start().await;
    if fixture.test.skip_on_real("a node that runs pods") {
        return;
    }
    let running = RunningPod::sleeping().await;
    let options = ExecOptions {
        container: Some("none".into()),
        ..ExecOptions::default()
    };
    let error = running.pod.exec(["true"], &options).await.unwrap_err();
    assert_eq!(error.code(), Some(400), "{error}");
    assert!(
        error
            .to_string()
            .contains("container none is not valid for pod box"),
        "{error}"
    );
    let nothing: [&str; 0] = [];
    let refused = invalid(running.pod.exec(nothing, &ExecOptions::default()).await);
    assert_eq!(
        refused,
        "the command is empty: give a program and its arguments"
    );
    let pods = running
        .pod
        .cluster()
        .pods()
        .in_namespace("default")
        .unwrap();
    let gone = pods.output("none", ["true"], None).await.unwrap_err();
    assert!(gone.is_not_found(), "{gone}");
    running.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn point_45_ports_are_forwarded() {
    if lacks_a_node().await {
        return;
    }
    let script = "import socket, os\ns = socket.create_server((os.environ['IP'], 7007))\nwhile True:\n c, _ = s.accept()\n d = c.recv(100)\n c.sendall(d.upper())\n c.close()\n";
    let container = json!({
        "command": ["python3", "-c", script],
        "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
    });
    let running = RunningPod::start(container).await;
    let forward = running.pod.port_forward(7007).unwrap();
    let shout = async || {
        let mut stream = forward.connect().await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.map(|_| text)
    };
    // The program may not listen yet.
    let begun = std::time::Instant::now();
    let text = loop {
        match shout().await {
            Ok(text) => break text,
            Err(error) => assert!(begun.elapsed() < TIMEOUT, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(text, "HELLO");
    let unserved = running
        .pod
        .port_forward(7008)
        .unwrap()
        .connect()
        .await
        .unwrap();
    let mut unserved = std::pin::pin!(unserved);
    let error = unserved
        .read_to_string(&mut String::new())
        .await
        .unwrap_err();
    assert_eq!(
        error.kind(),
        std::io::ErrorKind::ConnectionRefused,
        "{error}"
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move { forward.serve(listener, |_| ()).await });
    for _ in 0..3 {
        let mut local = TcpStream::connect(address).await.unwrap();
        local.write_all(b"again").await.unwrap();
        let mut text = String::new();
        local.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "AGAIN");
    }
    serving.abort();
    running.server.stop().await;
}
