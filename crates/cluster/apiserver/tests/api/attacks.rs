//! Hostile clients, with and without credentials: the server's memory stays bounded, and
//! the administrator still gets responses.

use std::{env, io, process::Command, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::join_all;
use http::Request;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use longshore_apiserver::limits;
use longshore_engine::{Create, Engine, WriteOptions};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, timeout},
};

use crate::{
    common::CONFIG_MAPS,
    http2_frames,
    network::{Running, start},
};

/// Set in the process that a test starts for itself.
const OWN_PROCESS: &str = "LONGSHORE_TEST_OWN_PROCESS";
/// No response takes longer, even on a busy machine.
const MAX_RESPONSE_TIME: Duration = Duration::from_secs(60);
/// Duration of a flood.
const FLOOD_DURATION: Duration = Duration::from_secs(2);
const MIB: u64 = 1 << 20;

/// Runs a test of this file in its own process, which makes its measurements independent. Returns
/// true in this process.
fn in_own_process(name: &str) -> bool {
    in_own_process_named(&format!("attacks::{name}"))
}

/// Like [`in_own_process`], for any test; `name` includes the module.
pub(crate) fn in_own_process_named(name: &str) -> bool {
    if env::var_os(OWN_PROCESS).is_some() {
        return true;
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(OWN_PROCESS, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{errors}"
    );
    false
}

/// The memory of this process, in bytes.
pub(crate) fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.unwrap().trim().trim_end_matches("kB").trim();
    kib.parse::<u64>().unwrap() * 1024
}

/// The administrator gets a response on a new connection. Like other clients, it retries
/// when the connection breaks.
async fn assert_administrator_is_served(running: &Running) {
    let asking = async {
        loop {
            let path = "/api/v1/namespaces";
            if let Ok(answer) = running.ask(b"http/1.1", path, "secret").await {
                assert_eq!(answer.status(), 200);
                return;
            }
        }
    };
    timeout(MAX_RESPONSE_TIME, asking)
        .await
        .expect("the administrator gets a response");
}

/// The number of connections for which this process has enough descriptors at both ends.
fn connections(most: usize) -> usize {
    let limit = std::fs::read_to_string("/proc/self/limits").unwrap();
    let limit = limit
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let limit = limit.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
    most.min((limit.unwrap_or(1024_usize).saturating_sub(300)) / 2)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_heads_without_credentials_take_little_memory() {
    if !in_own_process("unfinished_heads_without_credentials_take_little_memory") {
        return;
    }
    let mut running = start().await;
    assert_administrator_is_served(&running).await;
    let before = memory();
    let head = format!(
        "GET / HTTP/1.1\r\nhost: x\r\nx-large: {}",
        "a".repeat(1 << 20)
    );
    let attack = (0..400).map(|_| async {
        let mut stream = running.connect(b"http/1.1", "localhost").await;
        // The server may reject the head before all of it is sent.
        let _ = timeout(MAX_RESPONSE_TIME, stream.write_all(head.as_bytes())).await;
        stream
    });
    let held = join_all(attack).await;
    let grown = memory().saturating_sub(before);
    assert!(grown < 120 * MIB, "{} MiB", grown / MIB);
    assert_administrator_is_served(&running).await;
    drop(held);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_without_credentials_lock_no_one_out() {
    if !in_own_process("idle_connections_without_credentials_lock_no_one_out") {
        return;
    }
    let mut running = start().await;
    let number = connections(3000);
    let mut held = Vec::new();
    for _ in 0..number {
        held.push(TcpStream::connect(running.address).await.unwrap());
    }
    assert_administrator_is_served(&running).await;
    // The server closed the oldest connections to make room.
    let is_closed = |stream: &TcpStream| {
        let mut byte = [0];
        match stream.try_read(&mut byte) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    };
    let begin = Instant::now();
    loop {
        let open = held.iter().filter(|stream| !is_closed(stream)).count();
        if open <= limits::UNAUTHENTICATED_CONNECTIONS {
            break;
        }
        assert!(
            begin.elapsed() < MAX_RESPONSE_TIME,
            "{open} of {number} are open"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_administrator_is_served(&running).await;
    running.end().await;
}

#[tokio::test]
async fn the_time_to_authenticate_is_short_and_then_connections_stay() {
    let mut running = start().await;
    let mut bare = TcpStream::connect(running.address).await.unwrap();
    let mut silent = running.connect(b"http/1.1", "localhost").await;
    let mut slow = running.connect(b"http/1.1", "localhost").await;
    slow.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n")
        .await
        .unwrap();
    let mut h2 = running.connect(b"h2", "localhost").await;
    h2.write_all(&http2_frames::start(65_535)).await.unwrap();
    let mut client = running.connect(b"http/1.1", "localhost").await;
    let request =
        format!("GET {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer secret\r\n\r\n");
    let ask = async |client: &mut tokio_rustls::client::TlsStream<TcpStream>| {
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = vec![0; 12];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, b"HTTP/1.1 200");
        // The rest of the request.
        let mut rest = vec![0; 4096];
        let _ = timeout(Duration::from_millis(200), client.read(&mut rest)).await;
    };
    ask(&mut client).await;
    let mut rest = Vec::new();
    for ended in [
        timeout(MAX_RESPONSE_TIME, bare.read_to_end(&mut rest)).await,
        timeout(MAX_RESPONSE_TIME, silent.read_to_end(&mut rest)).await,
        timeout(MAX_RESPONSE_TIME, slow.read_to_end(&mut rest)).await,
        timeout(MAX_RESPONSE_TIME, h2.read_to_end(&mut rest)).await,
    ] {
        assert!(ended.is_ok(), "the connection is closed");
    }
    ask(&mut client).await;
    running.end().await;
}

#[tokio::test]
async fn requests_without_credentials_end_their_connection() {
    let mut running = start().await;
    let mut stream = running.connect(b"h2", "localhost").await;
    // With a window of zero, no body of a response can be sent.
    let mut bytes = http2_frames::start(0);
    for number in 0..1000 {
        bytes.extend(http2_frames::request(number * 2 + 1, "/api", None));
    }
    let _ = stream.write_all(&bytes).await;
    let mut rest = Vec::new();
    let begin = Instant::now();
    let ended = timeout(MAX_RESPONSE_TIME, stream.read_to_end(&mut rest)).await;
    assert!(ended.is_ok());
    assert!(
        begin.elapsed() < limits::UNAUTHENTICATED_TIME,
        "{:?}",
        begin.elapsed()
    );
    assert_administrator_is_served(&running).await;
    running.end().await;
}

/// Sends frames, without reading, until the server closes the connection or a time limit.
async fn flood(running: &Running, mut frames: impl FnMut(u32) -> Vec<u8>) {
    let mut stream = running.connect(b"h2", "localhost").await;
    let mut opening = http2_frames::start(0x7fff_ffff);
    // An authenticated client may keep its connection open.
    opening.extend(http2_frames::request(1, "/api", Some("secret")));
    stream.write_all(&opening).await.unwrap();
    let flooding = async {
        let mut number = 3;
        loop {
            let mut batch = Vec::new();
            for _ in 0..100 {
                batch.extend(frames(number));
                number = (number + 2) & 0x7fff_ffff;
            }
            if stream.write_all(&batch).await.is_err() || stream.flush().await.is_err() {
                return;
            }
        }
    };
    let _ = timeout(FLOOD_DURATION, flooding).await;
    // While the flood's connection is still open.
    assert_administrator_is_served(running).await;
    drop(stream);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_frames_are_bounded() {
    if !in_own_process("floods_of_frames_are_bounded") {
        return;
    }
    let mut running = start().await;
    assert_administrator_is_served(&running).await;
    let before = memory();
    let check = |what: &str| {
        let grown = memory().saturating_sub(before);
        assert!(grown < 150 * MIB, "{what}: {} MiB", grown / MIB);
    };
    for token in [None, Some("secret")] {
        flood(&running, |stream| {
            let mut frames = http2_frames::request(stream, CONFIG_MAPS, token);
            frames.extend(http2_frames::reset(stream));
            frames
        })
        .await;
        check("rapid reset");
        flood(&running, |stream| {
            http2_frames::request(stream, "/api/v1/namespaces", token)
        })
        .await;
        check("requests whose responses are not read");
    }
    let mut begun = false;
    flood(&running, |stream| {
        if !std::mem::replace(&mut begun, true) {
            return http2_frames::frame(http2_frames::HEADERS, 0, stream, &[0x82]);
        }
        http2_frames::frame(http2_frames::CONTINUATION, 0, 3, &[0; 1024])
    })
    .await;
    check("continuations without end");
    let mut begun = false;
    flood(&running, |stream| {
        if !std::mem::replace(&mut begun, true) {
            return http2_frames::frame(http2_frames::HEADERS, 0, stream, &[0x82]);
        }
        http2_frames::frame(http2_frames::CONTINUATION, 0, 3, &[])
    })
    .await;
    check("empty continuations");
    flood(&running, |_| {
        http2_frames::frame(http2_frames::PING, 0, 0, &[7; 8])
    })
    .await;
    check("pings");
    flood(&running, |_| {
        http2_frames::frame(http2_frames::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 9])
    })
    .await;
    check("settings");
    flood(&running, |_| {
        http2_frames::frame(http2_frames::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])
    })
    .await;
    check("window updates");
    flood(&running, |stream| {
        http2_frames::frame(http2_frames::PRIORITY, 0, stream, &[0, 0, 0, 1, 9])
    })
    .await;
    check("priorities");
    flood(&running, |stream| {
        let mut frames = http2_frames::open(stream, CONFIG_MAPS, "secret");
        frames.extend(http2_frames::frame(http2_frames::DATA, 0, stream, &[]));
        frames
    })
    .await;
    check("bodies that never arrive");
    running.end().await;
}

/// Creates large Secrets.
async fn fill(engine: &Engine, number: usize) {
    let kind = engine.find("", "v1", "secrets").unwrap();
    let writes = (0..number).map(|number| {
        engine.create(Create {
            kind: kind.clone(),
            namespace: Some("default".into()),
            object: json!({
                "metadata": {"name": format!("m-{number}")},
                "data": {"text": "eHh4".repeat(100_000)},
            }),
            options: WriteOptions::default(),
        })
    });
    for written in join_all(writes).await {
        written.unwrap();
    }
}

/// The memory of this process, in bytes, once it has not grown for a second.
async fn settled_memory(running: &Running) -> u64 {
    let mut highest = memory();
    let mut unchanged = 0;
    while unchanged < 10 {
        assert_administrator_is_served(running).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = memory();
        unchanged = if now > highest + MIB {
            0
        } else {
            unchanged + 1
        };
        highest = highest.max(now);
    }
    highest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_do_not_read_take_little_memory() {
    if !in_own_process("readers_that_do_not_read_take_little_memory") {
        return;
    }
    let mut running = start().await;
    fill(&running.engine, 20).await;
    assert_administrator_is_served(&running).await;
    let before = memory();
    let mut held = Vec::new();
    for path in [
        "/api/v1/secrets",
        "/api/v1/secrets?watch=true",
        "/openapi/v3/api/v1",
    ] {
        // As many streams as allowed, each with a window that fits its whole response.
        let mut stream = running.connect(b"h2", "localhost").await;
        let mut bytes = http2_frames::start(0x7fff_ffff);
        bytes.extend(http2_frames::frame(
            http2_frames::WINDOW_UPDATE,
            0,
            0,
            &[0x7f, 0xff, 0, 0],
        ));
        for number in 0..limits::STREAMS {
            bytes.extend(http2_frames::request(number * 2 + 1, path, Some("secret")));
        }
        let _ = timeout(MAX_RESPONSE_TIME, stream.write_all(&bytes)).await;
        let _ = timeout(MAX_RESPONSE_TIME, stream.flush()).await;
        held.push(stream);
    }
    let grown = settled_memory(&running).await.saturating_sub(before);
    // The streams share the objects and the documents that they send.
    let most = 3 * u64::from(limits::STREAMS) * 16 * 1024 + 50 * MIB;
    assert!(grown < most, "{} MiB", grown / MIB);
    drop(held);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_bodies_do_not_block_other_writers() {
    if !in_own_process("slow_bodies_do_not_block_other_writers") {
        return;
    }
    let mut running = start().await;
    let length = limits::REQUEST_BODY;
    let head = format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer secret\r\ncontent-length: {length}\r\n\r\n{{"
    );
    let mut held = Vec::new();
    for _ in 0..limits::BODIES / length + 3 {
        let mut stream = running.connect(b"http/1.1", "localhost").await;
        stream.write_all(head.as_bytes()).await.unwrap();
        held.push(stream);
    }
    // Clients that announce large bodies and send little take no memory.
    let stream = TokioIo::new(running.connect(b"h2", "localhost").await);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
            .await
            .unwrap();
    tokio::spawn(connection);
    let mut create = async |name: &str, size: usize| {
        let object = json!({"metadata": {"name": name}, "data": {"a": "x".repeat(size)}});
        let request = Request::post(format!("https://localhost{CONFIG_MAPS}"))
            .header("authorization", "Bearer secret")
            .header("content-type", "application/json");
        let body = Full::new(Bytes::from(object.to_string()));
        let answer = sender.send_request(request.body(body).unwrap());
        timeout(MAX_RESPONSE_TIME, answer).await.unwrap().unwrap()
    };
    assert_eq!(create("large", 900_000).await.status(), 201);
    // All bytes of the bodies except for the end: at least one body is rejected.
    let most = vec![b' '; length - 2];
    for stream in &mut held {
        // The server may reject the body before all of it is sent.
        let _ = timeout(MAX_RESPONSE_TIME, stream.write_all(&most)).await;
    }
    let first = held.iter_mut().map(|stream| {
        Box::pin(async move {
            let mut answer = vec![0; 12];
            stream.read_exact(&mut answer).await.unwrap();
            String::from_utf8(answer).unwrap()
        })
    });
    let (refused, ..) = timeout(MAX_RESPONSE_TIME, futures::future::select_all(first))
        .await
        .unwrap();
    assert_eq!(refused, "HTTP/1.1 429");
    assert_eq!(create("small", 1).await.status(), 201);
    drop(held);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_watches_of_one_client_leave_room_for_others() {
    let mut running = start().await;
    let mut connections = Vec::new();
    for _ in 0..3 {
        let stream = TokioIo::new(running.connect(b"h2", "localhost").await);
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
                .await
                .unwrap();
        tokio::spawn(connection);
        let watches = (0..limits::STREAMS).map(|_| {
            let mut sender = sender.clone();
            async move {
                let path = format!("https://localhost{CONFIG_MAPS}?watch=true");
                let request = Request::get(path).header("authorization", "Bearer secret");
                let request = request.body(Empty::<Bytes>::new()).unwrap();
                sender.send_request(request).await.unwrap()
            }
        });
        let watches = join_all(watches).await;
        connections.push((sender, watches));
    }
    assert_administrator_is_served(&running).await;
    let kind = running.engine.find("", "v1", "configmaps").unwrap();
    for number in 0..20 {
        let create = Create {
            kind: kind.clone(),
            namespace: Some("default".into()),
            object: json!({"metadata": {"name": format!("m-{number}")}}),
            options: WriteOptions::default(),
        };
        timeout(MAX_RESPONSE_TIME, running.engine.create(create))
            .await
            .unwrap()
            .unwrap();
    }
    assert_administrator_is_served(&running).await;
    // Each watch gets the event.
    let (_, watches) = &mut connections[2];
    let frame = timeout(MAX_RESPONSE_TIME, watches[999].body_mut().frame())
        .await
        .unwrap();
    let frame = frame.unwrap().unwrap().into_data().unwrap();
    assert!(frame.starts_with(br#"{"type":"ADDED","object":{"kind":"ConfigMap","#));
    running.end().await;
}

/// A node whose log streams panic.
struct PanickingNode;

impl longshore_node_api::NodeLogs for PanickingNode {
    fn open(
        &self,
        request: longshore_node_api::LogRequest,
    ) -> futures::future::BoxFuture<
        'static,
        Result<longshore_node_api::LogStream, longshore_node_api::LogError>,
    > {
        use futures::StreamExt as _;
        Box::pin(async move {
            assert!(request.follow, "a fault of the node");
            let stream = futures::stream::once(async { panic!("a fault in the stream") });
            Ok(stream.boxed())
        })
    }
}

#[tokio::test]
async fn a_panic_fails_its_own_request_only() {
    let server = crate::common::Server::with_logs(Arc::new(PanickingNode));
    server.pod("p", &["c"]).await;
    server
        .post("/api/v1/nodes", &json!({"metadata": {"name": "n"}}))
        .await;
    let pods = crate::common::PODS;
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    server.post(&format!("{pods}/p/binding"), &binding).await;
    let log = format!("{pods}/p/log");
    let answer = server.get(&log).await;
    assert_eq!(answer.code, 500, "{}", answer.text());
    assert_eq!(answer.json()["reason"], "InternalError");

    // Over the network, next to another request on the same connection.
    let mut running = crate::network::serve(server.api.clone(), server.engine.clone()).await;
    let stream = TokioIo::new(running.connect(b"h2", "localhost").await);
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
        .await
        .unwrap();
    tokio::spawn(connection);
    let ask = async |path: &str| {
        let request = Request::get(format!("https://localhost{path}"));
        let request = request.header("authorization", "Bearer secret");
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        timeout(MAX_RESPONSE_TIME, sender.clone().send_request(request))
            .await
            .unwrap()
    };
    let watch = ask(&format!("{CONFIG_MAPS}?watch=true")).await.unwrap();
    assert_eq!(ask(&log).await.unwrap().status(), 500);
    let broken = match ask(&format!("{log}?follow=true")).await {
        Ok(answer) => timeout(MAX_RESPONSE_TIME, answer.into_body().collect())
            .await
            .unwrap()
            .err(),
        Err(error) => Some(error),
    };
    assert!(broken.is_some());
    assert_eq!(ask(CONFIG_MAPS).await.unwrap().status(), 200);
    server.config_map("a").await;
    let frame = timeout(MAX_RESPONSE_TIME, watch.into_body().frame())
        .await
        .unwrap();
    assert!(frame.unwrap().is_ok());
    running.end().await;
}
