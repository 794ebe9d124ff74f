//! Hostile clients of exec and port-forward: the memory of their WebSockets is bounded,
//! other clients are served, and each connection is closed with the reason.

use std::{sync::Arc, time::Duration};

use http::{Request, Response};
use hyper_util::rt::TokioIo;
use longshore_apiserver::{Body, limits};
use longshore_node_api::{
    BoxedConnection, ContainerRef, NodeStreams, Opening, Session, SessionError, StreamsWanted,
};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::timeout,
};
use tower::ServiceExt as _;

use crate::{
    attacks::{in_own_process_named, memory},
    common::{PODS, Server},
};

const TIMEOUT: Duration = Duration::from_secs(60);
const MIB: u64 = 1 << 20;

/// Frames by their first byte.
const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const BEGIN: u8 = 0x02;
const CONTINUE: u8 = 0;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;

/// Commands that echo what they read.
struct Echo;

impl NodeStreams for Echo {
    fn check(&self, _: &ContainerRef) -> Result<(), SessionError> {
        Ok(())
    }

    fn exec(&self, _: ContainerRef, _: Vec<String>, _: StreamsWanted) -> Opening<Session> {
        let (near, far) = tokio::io::duplex(4096);
        let (mut read, mut write) = tokio::io::split(far);
        tokio::spawn(async move { tokio::io::copy(&mut read, &mut write).await });
        let (output, input) = tokio::io::split(near);
        let session = Session {
            input: Some(Box::pin(input)),
            output: Some(Box::pin(output)),
            errors: None,
            resize: None,
            end: Box::pin(std::future::pending()),
        };
        Box::pin(async { Ok(session) })
    }

    fn attach(&self, container: ContainerRef, wanted: StreamsWanted) -> Opening<Session> {
        self.exec(container, Vec::new(), wanted)
    }

    fn connect(&self, _: ContainerRef, _: u16) -> Opening<BoxedConnection> {
        Box::pin(async { Err(SessionError::Failed("connection refused".into())) })
    }
}

async fn server() -> Server {
    let server = Server::with_streams(Arc::new(Echo));
    server.pod("p", &["main"]).await;
    server
        .post("/api/v1/nodes", &json!({"metadata": {"name": "n"}}))
        .await;
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    server.post(&format!("{PODS}/p/binding"), &binding).await;
    server
}

const EXEC: (&str, &str) = ("exec?command=x&stdin=true&stdout=true", "v5.channel.k8s.io");
const TUNNEL: (&str, &str) = ("portforward", "SPDY/3.1+portforward.k8s.io");

/// Opens a WebSocket of the pod `p`.
pub(crate) async fn open(
    server: &Server,
    (path, protocol): (&str, &str),
) -> impl AsyncRead + AsyncWrite + Unpin + use<> {
    let request = Request::get(format!("{PODS}/p/{path}"))
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("sec-websocket-protocol", protocol)
        .body(Body::empty())
        .unwrap();
    let response: Response<Body> = server.api.service().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 101);
    TokioIo::new(hyper::upgrade::on(response).await.unwrap())
}

/// The head of a client's frame, with a mask of zero.
fn head(first: u8, length: u64) -> Vec<u8> {
    let mut head = vec![first];
    if let Ok(length @ ..126) = u8::try_from(length) {
        head.push(0x80 | length);
    } else {
        head.push(0x80 | 127);
        head.extend(length.to_be_bytes());
    }
    head.extend([0; 4]);
    head
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    [&head(first, payload.len() as u64), payload].concat()
}

/// The server's next frame: its first byte and payload.
async fn read(io: &mut (impl AsyncRead + Unpin)) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    io.read_exact(&mut head).await.unwrap();
    let length = match head[1] {
        126 => usize::from(io.read_u16().await.unwrap()),
        127 => usize::try_from(io.read_u64().await.unwrap()).unwrap(),
        length => usize::from(length),
    };
    let mut payload = vec![0; length];
    io.read_exact(&mut payload).await.unwrap();
    (head[0], payload)
}

/// The code with which the server closes.
async fn close_code(io: &mut (impl AsyncRead + Unpin)) -> u16 {
    let reading = async {
        loop {
            let (first, payload) = read(io).await;
            if first == CLOSE {
                return u16::from_be_bytes([payload[0], payload[1]]);
            }
        }
    };
    timeout(TIMEOUT, reading).await.expect("a close frame")
}

/// Runs a command as another client.
async fn assert_others_are_served(server: &Server) {
    let mut io = open(server, EXEC).await;
    io.write_all(&frame(BINARY, b"\0hello")).await.unwrap();
    let served = async {
        loop {
            let (_, payload) = read(&mut io).await;
            if payload == b"\x01hello" {
                return;
            }
        }
    };
    timeout(TIMEOUT, served).await.expect("others are served");
}

#[tokio::test]
async fn protocol_violations_close_with_their_code() {
    let server = server().await;
    let most = limits::SOCKET_MESSAGE;
    let mut fragments = frame(BEGIN, &vec![0; most / 2]);
    fragments.extend(frame(CONTINUE, &vec![0; most / 2 + 1]));
    for (what, bytes, code) in [
        ("an unmasked frame", vec![BINARY, 1, 0], 1002),
        ("reserved bits", frame(0x40 | BINARY, b"\0x"), 1002),
        ("a reserved opcode", frame(0x83, b"\0x"), 1002),
        ("a fragmented ping", frame(0x09, b"x"), 1002),
        ("a long ping", frame(PING, &[0; 126]), 1002),
        ("a continuation without a start", frame(0x80, b"\0x"), 1002),
        ("text that is not UTF-8", frame(TEXT, b"\0\xff\xff"), 1007),
        (
            "a message that is too large",
            head(BINARY, most as u64 + 1),
            1009,
        ),
        ("a message without end", head(BINARY, u64::MAX >> 1), 1009),
        ("fragments that are too large together", fragments, 1009),
    ] {
        for session in [EXEC, TUNNEL] {
            let mut io = open(&server, session).await;
            // More bytes follow, and are not parsed as frames.
            let sending = [&bytes[..], &[0xff; 100_000]].concat();
            let (read, mut write) = tokio::io::split(&mut io);
            let mut read = read;
            let sending = async {
                let _ = write.write_all(&sending).await;
            };
            let (received, ()) = tokio::join!(close_code(&mut read), sending);
            assert_eq!(received, code, "{what} {session:?}");
        }
    }
    assert_others_are_served(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_frames_keep_little() {
    if !in_own_process_named("websocket_floods::floods_of_frames_keep_little") {
        return;
    }
    let server = server().await;
    assert_others_are_served(&server).await;
    let before = memory();
    let mut held = Vec::new();
    for (what, frames) in [
        // The pongs are not read.
        ("pings", frame(PING, &[0; 125])),
        ("pongs", frame(0x8a, &[0; 125])),
        ("empty messages", frame(BINARY, b"")),
        ("messages for no channel", frame(BINARY, b"\x09nothing")),
        ("channels that are closed", frame(BINARY, b"\xff\x07")),
        ("sizes without a terminal", frame(BINARY, b"\x04{}{}{}")),
    ] {
        let mut io = open(&server, EXEC).await;
        let many = frames.repeat((1 << 16) / frames.len());
        let flooding = async {
            for _ in 0..400 {
                io.write_all(&many).await.unwrap();
            }
        };
        // The data is blocked or accepted, but not buffered.
        let _ = timeout(Duration::from_secs(20), flooding).await;
        let grown = memory().saturating_sub(before);
        assert!(grown < 12 * MIB, "{what}: {} MiB", grown / MIB);
        held.push(io);
    }
    // A message of empty fragments, without end.
    let mut io = open(&server, EXEC).await;
    io.write_all(&frame(BEGIN, b"\0")).await.unwrap();
    let many = frame(CONTINUE, b"").repeat(10_000);
    for _ in 0..200 {
        io.write_all(&many).await.unwrap();
    }
    let grown = memory().saturating_sub(before);
    assert!(grown < 12 * MIB, "empty fragments: {} MiB", grown / MIB);
    assert_others_are_served(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_messages_share_one_limit() {
    if !in_own_process_named("websocket_floods::large_messages_share_one_limit") {
        return;
    }
    let server = server().await;
    let most = limits::SOCKET_MESSAGE;
    let chunk = vec![0; 1 << 20];
    let mut held = Vec::new();
    let mut refused = 0;
    let sessions = limits::SOCKETS_UNREAD / most + 3;
    for _ in 0..sessions {
        let mut io = open(&server, EXEC).await;
        // All but the last byte, so that the message is buffered.
        io.write_all(&head(BINARY, most as u64)).await.unwrap();
        for _ in 0..31 {
            io.write_all(&chunk).await.unwrap();
        }
        held.push(io);
    }
    for io in &mut held {
        match timeout(Duration::from_millis(500), close_code(io)).await {
            Ok(code) => {
                assert_eq!(code, 1013);
                refused += 1;
            }
            Err(_) => continue,
        }
    }
    assert!((1..=4).contains(&refused), "{refused} of {sessions}");
    assert_others_are_served(&server).await;
    // A closed connection releases its share.
    drop(held);
    for attempt in 0.. {
        let mut io = open(&server, EXEC).await;
        let mut message = frame(BINARY, &vec![0; 1 << 20]);
        message.extend(frame(CLOSE, &1000_u16.to_be_bytes()));
        let (mut read, mut write) = tokio::io::split(&mut io);
        let sending = async {
            let _ = write.write_all(&message).await;
        };
        let (code, ()) = tokio::join!(close_code(&mut read), sending);
        if code == 1000 {
            break;
        }
        assert!(attempt < 100, "{code}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
