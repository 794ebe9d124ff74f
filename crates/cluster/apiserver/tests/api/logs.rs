//! `pods/log` with a fake node.

use std::sync::{Arc, Mutex};

use crate::{
    common::{PODS, Server},
    websocket_floods::open,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _, future::BoxFuture};
use longshore_node_api::{LogError, LogRequest, LogStream, NodeLogs};
use serde_json::json;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        protocol::{Role, frame::coding::CloseCode},
    },
};

/// Records the request, and responds by the container's name.
#[derive(Default)]
struct Node(Mutex<Vec<LogRequest>>);

impl NodeLogs for Node {
    fn open(&self, request: LogRequest) -> BoxFuture<'static, Result<LogStream, LogError>> {
        let answer = match request.container.as_str() {
            "waiting" => Err(LogError::NotReady(
                "container \"waiting\" in pod \"p\" is waiting to start: ContainerCreating".into(),
            )),
            _ => {
                let lines = ["one\n", "two\n"].map(|line| Ok(Bytes::from_static(line.as_bytes())));
                let stream = futures::stream::iter(lines);
                Ok(if request.follow {
                    stream.chain(futures::stream::pending()).boxed()
                } else {
                    stream.boxed()
                })
            }
        };
        self.0.lock().unwrap().push(request);
        async move { answer }.boxed()
    }
}

async fn server() -> (Server, Arc<Node>) {
    let node = Arc::new(Node::default());
    let server = Server::with_logs(node.clone());
    server.pod("p", &["main", "waiting"]).await;
    server
        .post("/api/v1/nodes", &json!({"metadata": {"name": "n"}}))
        .await;
    (server, node)
}

async fn bind(server: &Server) {
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    assert_eq!(
        server
            .post(&format!("{PODS}/p/binding"), &binding)
            .await
            .code,
        201
    );
}

#[tokio::test]
async fn options_reach_the_node() {
    let (server, node) = server().await;
    let path = format!("{PODS}/p/log?container=main&tailLines=5&timestamps=true");
    assert_eq!(server.get(&path).await.text(), "", "no node runs it yet");
    assert_eq!(node.0.lock().unwrap().len(), 0);
    bind(&server).await;
    let log = server.get(&path).await;
    assert_eq!((log.code, log.text().as_str()), (200, "one\ntwo\n"));
    assert_eq!(log.header("content-type"), "text/plain");
    let asked = node.0.lock().unwrap().remove(0);
    assert_eq!(
        (asked.container.as_str(), asked.tail_lines, asked.timestamps),
        ("main", Some(5), true)
    );
    assert_eq!(asked.namespace, "default");
    assert!(!asked.uid.is_empty());
}

#[tokio::test]
async fn logs_that_cannot_be_read() {
    let (server, _) = server().await;
    bind(&server).await;
    let log = |path: &'static str| {
        let server = &server;
        async move {
            let answer = server.get(&format!("{PODS}/{path}")).await;
            (answer.code, answer.message())
        }
    };
    assert_eq!(
        log("p/log").await,
        (
            400,
            "a container name must be specified for pod p, choose one of: [main waiting]".into()
        )
    );
    assert_eq!(
        log("p/log?container=x").await,
        (400, "container x is not valid for pod p".into())
    );
    assert_eq!(
        log("p/log?container=waiting").await,
        (
            400,
            "container \"waiting\" in pod \"p\" is waiting to start: ContainerCreating".into()
        )
    );
    assert_eq!(log("q/log").await, (404, "pods \"q\" not found".into()));
}

#[tokio::test]
async fn a_followed_log_ends_with_the_server() {
    let (server, _) = server().await;
    bind(&server).await;
    let api = server.api.clone();
    let following = tokio::spawn(async move {
        server
            .get(&format!("{PODS}/p/log?container=main&follow=true"))
            .await
            .text()
    });
    api.close();
    // The log ends even if the lines were not read before the shutdown.
    let text = following.await.unwrap();
    assert!(
        ["", "one\n", "one\ntwo\n"].contains(&text.as_str()),
        "{text:?}"
    );
}

/// Each message has a part of the log, as bytes or in base64.
#[tokio::test]
async fn a_log_over_a_websocket() {
    let (server, _) = server().await;
    bind(&server).await;
    for (protocol, base64) in [("binary.k8s.io", false), ("base64.binary.k8s.io", true)] {
        let io = open(&server, ("log?container=main", protocol)).await;
        let mut socket = WebSocketStream::from_raw_socket(io, Role::Client, None).await;
        let mut log = Vec::new();
        let mut close = None;
        while let Some(Ok(message)) = socket.next().await {
            match message {
                Message::Binary(bytes) if !base64 => log.extend(bytes),
                Message::Text(text) if base64 => log.extend(STANDARD.decode(text).unwrap()),
                Message::Close(frame) => close = frame,
                other => panic!("{other}"),
            }
        }
        assert_eq!(String::from_utf8(log).unwrap(), "one\ntwo\n");
        assert_eq!(close.unwrap().code, CloseCode::Normal);
    }
    // A client that goes away ends a log that would continue.
    let io = open(&server, ("log?container=main&follow=true", "binary.k8s.io")).await;
    drop(io);
}
