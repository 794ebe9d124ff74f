//! Sessions with containers of a fake node: the effect of slow and absent clients.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use hyper_util::rt::TokioIo;
use longshore_apiserver::Body;
use longshore_node_api::{
    BoxedConnection, ContainerRef, NodeStreams, Opening, Session, SessionError, StreamsWanted,
};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};
use tower::ServiceExt as _;

use crate::common::{PODS, Server};

const EXEC: &str = "exec?command=x&stdout=true";

/// Runs commands that write zeros without end.
#[derive(Clone, Default)]
struct Endless {
    /// The number of bytes that were read from the commands.
    taken: Arc<AtomicUsize>,
    /// The reference count shows how many sessions exist.
    held: Arc<()>,
}

impl AsyncRead for Endless {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = buffer.remaining();
        buffer.initialize_unfilled().fill(0);
        buffer.advance(count);
        self.taken.fetch_add(count, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

/// Has some bytes, then fails because its reader was too slow.
struct LostOutput(&'static [u8]);

impl AsyncRead for LostOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0.is_empty() {
            let error = io::Error::new(io::ErrorKind::TimedOut, "output is lost");
            return Poll::Ready(Err(error));
        }
        buffer.put_slice(std::mem::take(&mut self.0));
        Poll::Ready(Ok(()))
    }
}

impl NodeStreams for Endless {
    fn check(&self, _: &ContainerRef) -> Result<(), SessionError> {
        Ok(())
    }

    fn exec(&self, _: ContainerRef, _: Vec<String>, _: StreamsWanted) -> Opening<Session> {
        let session = Session {
            input: None,
            output: Some(Box::pin(self.clone())),
            errors: None,
            resize: None,
            end: Box::pin(std::future::pending()),
        };
        Box::pin(async { Ok(session) })
    }

    /// Writes a little, then drops the client.
    fn attach(&self, _: ContainerRef, _: StreamsWanted) -> Opening<Session> {
        let session = Session {
            input: None,
            output: Some(Box::pin(LostOutput(&b"some output"[..]))),
            errors: None,
            resize: None,
            end: Box::pin(std::future::pending()),
        };
        Box::pin(async { Ok(session) })
    }

    /// Connects to a server that writes zeros without end.
    fn connect(&self, _: ContainerRef, _: u16) -> Opening<BoxedConnection> {
        let both = tokio::io::join(self.clone(), tokio::io::sink());
        Box::pin(async { Ok(Box::pin(both) as BoxedConnection) })
    }
}

async fn server() -> (Server, Endless) {
    let node = Endless::default();
    let server = Server::with_streams(Arc::new(node.clone()));
    server.pod("p", &["main"]).await;
    server
        .post("/api/v1/nodes", &json!({"metadata": {"name": "n"}}))
        .await;
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    server.post(&format!("{PODS}/p/binding"), &binding).await;
    (server, node)
}

async fn ask(server: &Server, protocol: &str) -> Response<Body> {
    ask_for(server, EXEC, protocol).await
}

async fn ask_for(server: &Server, what: &str, protocol: &str) -> Response<Body> {
    let request = Request::get(format!("{PODS}/p/{what}"))
        .header("connection", "keep-alive, Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("sec-websocket-protocol", protocol)
        .body(Body::empty())
        .unwrap();
    server.api.service().oneshot(request).await.unwrap()
}

/// Waits until a condition holds, with a short timeout.
async fn until(what: &str, is_it: impl Fn() -> bool) {
    for _ in 0..500 {
        if is_it() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}");
}

#[tokio::test]
async fn a_client_that_does_not_read_uses_little_memory() {
    waits_for_its_client(EXEC, "v5.channel.k8s.io").await;
    waits_for_its_client("portforward?ports=80", "v4.channel.k8s.io").await;
}

async fn waits_for_its_client(what: &str, protocol: &str) {
    let (server, node) = server().await;
    let idle = Arc::strong_count(&node.held);
    let response = ask_for(&server, what, protocol).await;
    assert_eq!(response.status(), 101);
    let upgraded = hyper::upgrade::on(response).await.unwrap();
    let mut io = TokioIo::new(upgraded);
    until("it begins", || node.taken.load(Ordering::Relaxed) > 0).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let taken = node.taken.load(Ordering::Relaxed);
    assert!(taken < 2 << 20, "{taken} bytes are buffered for a client");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(node.taken.load(Ordering::Relaxed), taken);
    // The output continues at the same position.
    let mut much = vec![0; 4 << 20];
    io.read_exact(&mut much).await.unwrap();
    assert!(Arc::strong_count(&node.held) > idle);
    drop(io);
    until("the session ends with its client", || {
        Arc::strong_count(&node.held) == idle
    })
    .await;
}

#[tokio::test]
async fn a_dropped_client_gets_an_error_status() {
    let (server, _) = server().await;
    let response = ask_for(&server, "attach?stdout=true", "v5.channel.k8s.io").await;
    assert_eq!(response.status(), 101);
    let mut io = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    let mut all = Vec::new();
    let reading = async {
        let mut buffer = [0; 4096];
        // The status is the last message. The connection waits for the client's close
        // frame.
        while !String::from_utf8_lossy(&all).contains("InternalError") {
            let count = io.read(&mut buffer).await.unwrap();
            assert!(count > 0, "{}", String::from_utf8_lossy(&all));
            all.extend_from_slice(&buffer[..count]);
        }
    };
    tokio::time::timeout(Duration::from_secs(30), reading)
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&all);
    assert!(text.contains("some output"), "{text}");
    assert!(
        text.contains("error attaching to container: output is lost"),
        "{text}"
    );
}

#[tokio::test]
async fn sessions_end_with_the_server() {
    let (server, node) = server().await;
    let idle = Arc::strong_count(&node.held);
    let response = ask(&server, "v4.channel.k8s.io").await;
    let upgraded = hyper::upgrade::on(response).await.unwrap();
    let mut io = TokioIo::new(upgraded);
    until("it begins", || node.taken.load(Ordering::Relaxed) > 0).await;
    server.api.close();
    let mut rest = Vec::new();
    let _ = io.read_to_end(&mut rest).await;
    until("it ends", || Arc::strong_count(&node.held) == idle).await;
}

#[tokio::test]
async fn failed_upgrade_negotiations_are_rejected() {
    let (server, _) = server().await;
    let refused = ask(&server, "v9.channel.k8s.io").await;
    assert_eq!(refused.status(), 403);
    let get = |path: &str| Request::get(format!("{PODS}/p/{path}"));
    for (request, code, part) in [
        (get(EXEC), 400, "Upgrade request required"),
        (
            get(EXEC)
                .header("connection", "Upgrade")
                .header("upgrade", "h2c"),
            400,
            "Upgrade request required",
        ),
        (
            get(EXEC)
                .header("connection", "Upgrade")
                .header("upgrade", "websocket"),
            400,
            "Sec-WebSocket-Key is missing",
        ),
        (
            get(EXEC)
                .header("connection", "Upgrade")
                .header("upgrade", "SPDY/3.1")
                .header("x-stream-protocol-version", "v9.channel.k8s.io"),
            403,
            "unable to negotiate protocol: client supports [v9.channel.k8s.io]",
        ),
        (
            get("portforward")
                .header("connection", "Upgrade")
                .header("upgrade", "websocket")
                .header("sec-websocket-version", "13")
                .header("sec-websocket-key", "x"),
            422,
            "ports: Required value",
        ),
        (
            get("portforward?ports=70000"),
            400,
            "\"70000\" is not a port",
        ),
    ] {
        let request = request.body(Body::empty()).unwrap();
        let response = server.api.service().oneshot(request).await.unwrap();
        assert_eq!(response.status(), code, "{part}");
        let body = http_body_util::BodyExt::collect(response.into_body()).await;
        let text = String::from_utf8(body.unwrap().to_bytes().to_vec()).unwrap();
        let status: serde_json::Value = serde_json::from_str(&text).unwrap();
        let message = status["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
    }
}
