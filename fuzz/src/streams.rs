//! Sessions: for any bytes on an upgraded connection, the session ends after the client
//! closes the connection, and the server still responds. The first byte of the input
//! selects the protocol; the rest is sent.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use longshore_node_api::{
    BoxedConnection, ContainerRef, NodeStreams, Opening, Session, SessionError, StreamsWanted,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tower::ServiceExt as _;

use super::server::Server;

const POD: &str = "/api/v1/namespaces/default/pods/p";
const MANIFEST: &[u8] =
    br#"{"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"x"}]}}"#;
/// A command with a terminal and all of its streams.
const TERMINAL: &str = "exec?command=x&stdin=true&stdout=true&tty=true";
/// A command without a terminal and all of its streams.
const PLAIN: &str = "exec?command=x&stdin=true&stdout=true&stderr=true";

/// The requested operation, the protocol of the connection, and the subprotocol.
const CARRIERS: [(&str, &str, &str); 8] = [
    (PLAIN, "SPDY/3.1", "v4.channel.k8s.io"),
    (TERMINAL, "SPDY/3.1", "v3.channel.k8s.io"),
    ("portforward", "SPDY/3.1", "portforward.k8s.io"),
    (PLAIN, "websocket", "v5.channel.k8s.io"),
    (TERMINAL, "websocket", "v4.channel.k8s.io"),
    (PLAIN, "websocket", "base64.channel.k8s.io"),
    (
        "portforward?ports=80&ports=81",
        "websocket",
        "v4.channel.k8s.io",
    ),
    ("portforward", "websocket", "SPDY/3.1+portforward.k8s.io"),
];

/// Sessions and ports that return the bytes that they receive.
struct Echo;

impl NodeStreams for Echo {
    fn check(&self, _: &ContainerRef) -> Result<(), SessionError> {
        Ok(())
    }

    fn exec(&self, _: ContainerRef, _: Vec<String>, wanted: StreamsWanted) -> Opening<Session> {
        Box::pin(async move {
            let (near, far) = tokio::io::duplex(4096);
            let (output, input) = tokio::io::split(near);
            let end = async move {
                let (mut from, mut to) = tokio::io::split(far);
                let _ = tokio::io::copy(&mut from, &mut to).await;
                let _ = to.shutdown().await;
                0
            };
            Ok(Session {
                input: wanted.input.then(|| Box::pin(input) as _),
                output: wanted.output.then(|| Box::pin(output) as _),
                errors: None,
                resize: Some(Box::new(|_, _| {})),
                end: Box::pin(end),
            })
        })
    }

    fn attach(&self, container: ContainerRef, wanted: StreamsWanted) -> Opening<Session> {
        self.exec(container, Vec::new(), wanted)
    }

    fn connect(&self, _: ContainerRef, port: u16) -> Opening<BoxedConnection> {
        Box::pin(async move {
            if port == 81 {
                return Err(SessionError::Failed("connection refused".into()));
            }
            let (near, far) = tokio::io::duplex(4096);
            tokio::spawn(async move {
                let (mut from, mut to) = tokio::io::split(far);
                let _ = tokio::io::copy(&mut from, &mut to).await;
                let _ = to.shutdown().await;
            });
            Ok(Box::pin(near) as BoxedConnection)
        })
    }
}

thread_local! {
    static SERVER: Server = {
        let server = Server::with_streams(Arc::new(Echo));
        let pods = POD.trim_end_matches("/p");
        let created = server.call("POST", pods, "application/json", MANIFEST);
        assert_eq!(created.code, 201, "{}", created.text());
        server
    };
}

pub fn check(data: &[u8]) {
    let Some((which, bytes)) = data.split_first() else {
        return;
    };
    let carrier = CARRIERS[usize::from(*which) % CARRIERS.len()];
    SERVER.with(|server| {
        server.block_on(async {
            let session = run_session(server, carrier, bytes);
            let ended = tokio::time::timeout(Duration::from_secs(30), session).await;
            assert!(ended.is_ok(), "a session does not end: {carrier:?}");
        });
        let response = server.call("GET", POD, "application/json", b"");
        assert_eq!(response.code, 200, "{}", response.text());
    });
}

async fn run_session(server: &Server, (what, upgrade, protocol): (&str, &str, &str), bytes: &[u8]) {
    let request = Request::post(format!("{POD}/{what}"))
        .header("connection", "Upgrade")
        .header("upgrade", upgrade)
        .header("x-stream-protocol-version", protocol)
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("sec-websocket-protocol", protocol)
        .body(Full::new(Bytes::new()))
        .expect("the request is valid");
    let response = server.service().oneshot(request).await;
    let response = response.expect("no injected fault drops connections");
    assert_eq!(response.status(), 101, "{what} {upgrade}");
    let upgraded = hyper::upgrade::on(response).await;
    let io = TokioIo::new(upgraded.expect("the server has accepted the upgrade"));
    let (mut read, mut write) = tokio::io::split(io);
    let sending = async {
        // The server may close the connection first.
        let _ = write.write_all(bytes).await;
        let _ = write.shutdown().await;
    };
    let mut got = Vec::new();
    let (_, _) = tokio::join!(sending, read.read_to_end(&mut got));
}
