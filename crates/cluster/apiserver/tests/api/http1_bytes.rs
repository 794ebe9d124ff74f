//! HTTP/1.1 as raw bytes: requests that no client library sends.

use crate::network::{Running, start};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const HEAD: &str = "host: x\r\nauthorization: Bearer secret\r\n";

/// Sends bytes, closes that direction, and reads until the end.
pub(crate) async fn exchange(running: &Running, bytes: &[u8]) -> String {
    let mut stream = running.connect(b"http/1.1", "localhost").await;
    // The server may have closed the connection. In this case, the response states the reason.
    let _ = stream.write_all(bytes).await;
    let _ = stream.flush().await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status codes of the responses, in order.
fn codes(answers: &str) -> Vec<&str> {
    answers
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|answer| &answer[..3])
        .collect()
}

#[tokio::test]
async fn pipelined_requests() {
    let mut running = start().await;
    let request = |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\n{HEAD}{more}\r\n");
    // All at once: the responses arrive in the same order.
    let pipeline = [
        request("/livez", ""),
        request("/nonsense", ""),
        request("/api/v1/namespaces/default", ""),
        request("/version", "connection: close\r\n"),
    ];
    let answers = exchange(&running, pipeline.concat().as_bytes()).await;
    assert_eq!(codes(&answers), ["200", "404", "200", "200"], "{answers}");
    // An HTTP/1.0 client gets one response, then the connection ends.
    let old = format!("GET /livez HTTP/1.0\r\n{HEAD}\r\n");
    let answer = exchange(&running, old.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    running.end().await;
}

#[tokio::test]
async fn invalid_heads() {
    let mut running = start().await;
    let get = |more: &str| format!("GET /livez HTTP/1.1\r\n{HEAD}{more}connection: close\r\n\r\n");
    let large = |size: usize| get(&format!("x-large: {}\r\n", "x".repeat(size)));
    for (what, bytes, code) in [
        ("no HTTP", "hello\r\n\r\n".to_owned(), "400"),
        ("no path", "GET\r\n\r\n".into(), "400"),
        ("a strange version", "GET / HTTP/9.9\r\n\r\n".into(), "400"),
        (
            "a space in the path",
            "GET /a b HTTP/1.1\r\n\r\n".into(),
            "400",
        ),
        ("a zero byte", get("x-bad: a\0b\r\n"), "400"),
        ("a bad name", get("x bad: 1\r\n"), "400"),
        ("a bad length", get("content-length: x\r\n"), "400"),
        ("a length below zero", get("content-length: -1\r\n"), "400"),
        (
            "two lengths",
            get("content-length: 1\r\ncontent-length: 2\r\n"),
            "400",
        ),
        (
            "an unknown coding",
            get("transfer-encoding: foo\r\n"),
            "400",
        ),
        ("a large header", large(60_000), "200"),
        ("a head of 2 MiB", large(2_200_000), "431"),
    ] {
        let answer = exchange(&running, bytes.as_bytes()).await;
        assert_eq!(codes(&answer).first(), Some(&code), "{what}: {answer}");
    }
    // HTTP/2 on a connection that negotiated HTTP/1.1 has no response that both sides
    // understand.
    let answer = exchange(&running, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert_eq!(answer, "");
    running.end().await;
}

#[tokio::test]
async fn chunked_bodies() {
    let mut running = start().await;
    let path = "/api/v1/namespaces/default/configmaps";
    let post = |more: &str, body: &str| {
        format!("POST {path} HTTP/1.1\r\n{HEAD}connection: close\r\n{more}\r\n{body}")
    };
    let (first, second) = (r#"{"metadata":"#, r#"{"name":"a"}}"#);
    let chunked = format!(
        "{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    );
    let chunks = "transfer-encoding: chunked\r\n";
    let expects = "expect: 100-continue\r\ncontent-length: 25\r\n";
    for (what, bytes, expected) in [
        ("chunks", post(chunks, &chunked), &["201"][..]),
        ("invalid chunks", post(chunks, "zz\r\nnonsense"), &["400"]),
        (
            "an expectation",
            post(expects, r#"{"metadata":{"name":"b"}}"#),
            &["100", "201"],
        ),
        ("no body at all", post("", ""), &["400"]),
    ] {
        let answer = exchange(&running, bytes.as_bytes()).await;
        assert_eq!(codes(&answer), expected, "{what}: {answer}");
    }
    // A client that sends less than the announced length has disconnected.
    let mut stream = running.connect(b"http/1.1", "localhost").await;
    let short = post("content-length: 100\r\n", r#"{"metadata":{"name":"c"}}"#);
    stream.write_all(short.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert!(codes(&answer).iter().all(|code| *code != "201"), "{answer}");
    running.end().await;
}

#[tokio::test]
async fn an_error_before_the_body_arrives_keeps_the_connection() {
    let mut running = start().await;
    let mut stream = running.connect(b"http/1.1", "localhost").await;
    // The paths and methods are invalid, so that no handler reads the bodies.
    for (method, path) in [("POST", "/apis/apps"), ("PUT", "/nonsense")] {
        let head = format!("{method} {path} HTTP/1.1\r\n{HEAD}content-length: 2\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        // Long enough for a response, if the server did not wait for the body.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        stream.write_all(b"{}").await.unwrap();
        stream.flush().await.unwrap();
    }
    let last = format!("GET /livez HTTP/1.1\r\n{HEAD}connection: close\r\n\r\n");
    stream.write_all(last.as_bytes()).await.unwrap();
    let mut answers = String::new();
    let _ = stream.read_to_string(&mut answers).await;
    assert_eq!(codes(&answers), ["405", "404", "200"], "{answers}");
    running.end().await;
}
