//! Tests of downloads from scripted servers.
#![allow(clippy::unwrap_used)]

use std::{
    io::Read,
    net::TcpListener,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::*;

/// Answers each connection with the given bytes, and returns the requests.
fn server(answers: Vec<Vec<u8>>) -> (SignedUrl, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move || {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut socket, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                socket.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            requests.push(String::from_utf8(request).unwrap());
            // The client may have closed the connection.
            let _ = socket.write_all(&answer);
        }
        requests
    };
    let url = format!("http://{address}/b/x.tar.gz?sig=hush");
    (SignedUrl::new(url), std::thread::spawn(serve))
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n{body}").into_bytes()
}

const RETRIES: RetryPolicy = RetryPolicy {
    attempts: 3,
    pause: Duration::from_millis(1),
    longest: Duration::from_millis(2),
    silence: Duration::from_secs(20),
};

fn get(url: &SignedUrl, size: u64) -> Result<String, DownloadError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let done = download(url, size, file.path(), RETRIES);
    if done.is_ok() {
        assert_eq!(std::fs::metadata(file.path()).unwrap().len(), size);
    }
    if let Err(error) = &done {
        assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
    }
    done
}

fn sha256(text: &str) -> String {
    hexadecimal(&Sha256::digest(text))
}

#[test]
fn without_range_support_the_download_restarts() {
    let (url, server) = server(vec![
        answer("200 OK", "content-length: 10\r\n", "0123"),
        answer("200 OK", "content-length: 10\r\n", "0123456789"),
    ]);
    assert_eq!(get(&url, 10).unwrap(), sha256("0123456789"));
    let requests = server.join().unwrap();
    assert!(requests[1].contains("range: bytes=4-\r\n"), "{requests:?}");
}

#[test]
fn a_download_in_pieces_is_assembled() {
    let piece = |from: u64, text: &str| {
        let headers = format!(
            "content-length: {}\r\ncontent-range: bytes {from}-9/10\r\n",
            10 - from
        );
        answer("206 Partial Content", &headers, text)
    };
    // More pieces than attempts, because each makes progress.
    let (url, server) = server(vec![
        answer("200 OK", "content-length: 10\r\n", "0"),
        piece(1, "1"),
        piece(2, "2"),
        piece(3, "3"),
        piece(4, "456789"),
    ]);
    assert_eq!(get(&url, 10).unwrap(), sha256("0123456789"));
    assert_eq!(server.join().unwrap().len(), 5);
}

#[test]
fn a_server_that_stays_busy_is_named() {
    let busy = || answer("503 Slow Down", "", "");
    let (url, server) = server(vec![busy(), busy(), busy()]);
    let text = get(&url, 10).unwrap_err().to_string();
    assert!(
        text.contains("503") && text.contains("after 3 attempts"),
        "{text}"
    );
    server.join().unwrap();
    // The server has exited.
    let text = get(&url, 10).unwrap_err().to_string();
    assert!(text.contains("Connection refused"), "{text}");
    assert!(text.contains("/b/x.tar.gz"), "{text}");
}

#[test]
fn permanent_errors_are_not_retried() {
    let cases = [
        (
            "400 Bad Request",
            "<Code>ExpiredToken</Code>",
            "submit the run again",
        ),
        ("401 Unauthorized", "", "submit the run again"),
        ("410 Gone", "", "no longer exists in the store"),
        ("307 Temporary Redirect", "", "307"),
    ];
    for (status, body, expected) in cases {
        let (url, server) = server(vec![answer(
            status,
            "location: http://x/?sig=hush\r\n",
            body,
        )]);
        let text = get(&url, 10).unwrap_err().to_string();
        assert!(text.contains(expected), "{status}: {text}");
        server.join().unwrap();
    }
}

#[test]
fn too_much_data_is_rejected_before_it_is_written() {
    // With a content length, and without.
    for headers in ["content-length: 11\r\n", ""] {
        let (url, server) = server(vec![answer("200 OK", headers, "0123456789a")]);
        let error = get(&url, 10).unwrap_err();
        assert!(
            matches!(
                error,
                DownloadError::WrongSize {
                    found: 11,
                    expected: 10,
                    ..
                }
            ),
            "{error:?}"
        );
        server.join().unwrap();
    }
}

#[test]
fn a_planned_bundle_is_reported_as_not_uploaded() {
    let url = SignedUrl::new("s3://b/p/bundles/ab.tar.gz");
    let text = get(&url, 10).unwrap_err().to_string();
    assert!(
        text.contains("s3://b/p/bundles/ab.tar.gz was not uploaded"),
        "{text}"
    );
}

#[test]
fn a_full_disk_is_reported() {
    let (url, server) = server(vec![answer("200 OK", "content-length: 2\r\n", "ab")]);
    let error = download(&url, 2, Path::new("/dev/full"), RETRIES).unwrap_err();
    assert!(matches!(error, DownloadError::Full { .. }), "{error:?}");
    server.join().unwrap();
}

#[test]
fn the_pause_that_a_busy_server_asks_for_is_kept() {
    let (url, server) = server(vec![
        answer("503 Slow Down", "retry-after: 1\r\n", ""),
        answer("429 Too Many Requests", "retry-after: 1\r\n", ""),
        answer("200 OK", "content-length: 2\r\n", "ab"),
    ]);
    let begin = Instant::now();
    assert_eq!(get(&url, 2).unwrap(), sha256("ab"));
    assert!(begin.elapsed() >= Duration::from_secs(2), "{begin:?}");
    server.join().unwrap();
}

#[test]
fn a_connection_that_transfers_nothing_ends_and_the_download_continues() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = SignedUrl::new(format!(
        "http://{}/x?sig=hush",
        listener.local_addr().unwrap()
    ));
    let serve = move || {
        let mut open = Vec::new();
        for half in ["0123", ""] {
            let (mut socket, _) = listener.accept().unwrap();
            let _ = socket.read(&mut [0; 1024]).unwrap();
            let head = match half {
                "" => String::new(),
                half => format!("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{half}"),
            };
            socket.write_all(head.as_bytes()).unwrap();
            // The connection stays open without another byte.
            open.push(socket);
        }
        let (mut socket, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let read = socket.read(&mut request).unwrap();
        let range = "content-length: 6\r\ncontent-range: bytes 4-9/10\r\n";
        socket
            .write_all(&answer("206 Partial Content", range, "456789"))
            .unwrap();
        String::from_utf8_lossy(&request[..read]).into_owned()
    };
    let server = std::thread::spawn(serve);
    let file = tempfile::NamedTempFile::new().unwrap();
    let policy = RetryPolicy {
        silence: Duration::from_millis(300),
        ..RETRIES
    };
    let found = download(&url, 10, file.path(), policy).unwrap();
    assert_eq!(found, sha256("0123456789"));
    assert!(server.join().unwrap().contains("range: bytes=4-\r\n"));
}
