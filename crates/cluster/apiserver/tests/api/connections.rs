//! Many connections, many watchers, and a client that does not read: no other client is
//! affected.

use std::time::Duration;

use crate::{common::CONFIG_MAPS, network::start};
use bytes::Bytes;
use futures::future::join_all;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use longshore_engine::{Create, Engine, WriteOptions};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The number of idle connections, from `LONGSHORE_TEST_CONNECTIONS` if set; at most as
/// many as the limit of open files allows for both ends.
fn idle_connections() -> usize {
    let wanted = std::env::var("LONGSHORE_TEST_CONNECTIONS");
    let wanted = wanted.ok().and_then(|text| text.parse().ok());
    let limit = std::fs::read_to_string("/proc/self/limits").unwrap();
    let limit = limit
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let limit = limit.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
    let both_ends = (limit.unwrap_or(1024_usize).saturating_sub(300)) / 2;
    wanted.unwrap_or(300).min(both_ends)
}

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const WATCHERS: usize = 1000;
/// Watchers on one connection.
const SHARED: usize = 100;
const EVENTS: usize = 20;
/// Large objects for the slow client: more than all buffers on the way can hold.
const LARGE: usize = 60;

/// Creates objects, each with this text.
async fn write(engine: &Engine, plural: &str, number: usize, size: usize) {
    let kind = engine.find("", "v1", plural).unwrap();
    let writes = (0..number).map(|number| {
        engine.create(Create {
            kind: kind.clone(),
            namespace: Some("default".into()),
            object: json!({
                "metadata": {"name": format!("m-{number}")},
                "data": {"text": "eHh4".repeat(size / 4)},
            }),
            options: WriteOptions::default(),
        })
    });
    for written in join_all(writes).await {
        written.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_and_watchers_beside_a_slow_one() {
    let mut running = start().await;
    let mut idle = Vec::new();
    for _ in 0..idle_connections() {
        let mut stream = running.connect(b"http/1.1", "localhost").await;
        // Only authenticated connections may be idle.
        let request = "HEAD /api HTTP/1.1\r\nhost: x\r\nauthorization: Bearer secret\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
        idle.push(stream);
    }
    // This client sends many requests but does not read.
    let mut slow = running.connect(b"http/1.1", "localhost").await;
    let request = format!(
        "GET {SECRETS}?watch=1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer secret\r\n\r\n"
    );
    slow.write_all(request.as_bytes()).await.unwrap();

    let mut watchers = tokio::task::JoinSet::new();
    let (ready, mut readied) = tokio::sync::mpsc::channel::<()>(WATCHERS);
    for _ in 0..WATCHERS / SHARED {
        let stream = TokioIo::new(running.connect(b"h2", "localhost").await);
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
                .await
                .unwrap();
        tokio::spawn(connection);
        for _ in 0..SHARED {
            let (mut sender, ready) = (sender.clone(), ready.clone());
            watchers.spawn(async move {
                let request = Request::get(format!("https://localhost{CONFIG_MAPS}?watch=1"))
                    .header("authorization", "Bearer secret")
                    .body(Empty::<Bytes>::new())
                    .unwrap();
                let mut body = sender.send_request(request).await.unwrap().into_body();
                ready.send(()).await.unwrap();
                let mut events = 0;
                while events < EVENTS {
                    let frame = body.frame().await.unwrap().unwrap();
                    let data = frame.into_data().unwrap_or_default();
                    events += data.iter().filter(|&&byte| byte == b'\n').count();
                }
                events
            });
        }
    }
    for _ in 0..WATCHERS {
        readied.recv().await.unwrap();
    }

    write(&running.engine, "secrets", LARGE, 500_000).await;
    write(&running.engine, "configmaps", EVENTS, 1000).await;
    let seen = watchers.join_all().await;
    assert_eq!(seen, vec![EVENTS; WATCHERS]);

    // The idle connections are still served.
    for stream in idle.iter_mut().step_by(50) {
        let request = "GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("ok"), "{answer}");
    }
    // The slow client also gets all data once it reads.
    let mut events = 0;
    let mut buffer = vec![0; 1 << 16];
    while events < LARGE {
        let read = slow.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "the watch ended after {events} events");
        // Each event has a separate chunk, and newlines only end events.
        events += buffer[..read]
            .windows(2)
            .filter(|two| two == b"}\n")
            .count();
    }
    running.end().await;
}

/// A client that sends its head byte by byte, or stops in the middle of a body, does not
/// block others and never gets a false success.
#[tokio::test]
async fn slow_senders() {
    let mut running = start().await;
    let head =
        format!("POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer secret\r\n");
    let mut slow_head = running.connect(b"http/1.1", "localhost").await;
    slow_head.write_all(&head.as_bytes()[..40]).await.unwrap();
    let mut half = running.connect(b"http/1.1", "localhost").await;
    let request = format!("{head}content-length: 1000\r\n\r\n{{");
    half.write_all(request.as_bytes()).await.unwrap();
    let mut chunked = running.connect(b"http/1.1", "localhost").await;
    let request = format!("{head}transfer-encoding: chunked\r\n\r\nffffffff\r\n{{");
    chunked.write_all(request.as_bytes()).await.unwrap();

    let other = running.get(b"http/1.1", "localhost", "/livez", "").await;
    assert_eq!(other.status(), 200);
    half.shutdown().await.unwrap();
    let mut answer = String::new();
    // The side that closes first decides whether the client gets a response. It is never a success.
    let _ = half.read_to_string(&mut answer).await;
    assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    let objects = running.get(b"http/1.1", "localhost", CONFIG_MAPS, "secret");
    let objects = objects.await.into_body().collect().await.unwrap();
    assert!(objects.to_bytes().ends_with(b"\"items\":[]}\n"));
    // Shutdown does not wait for slow senders.
    tokio::time::timeout(Duration::from_secs(20), running.end())
        .await
        .unwrap();
}
