//! Tests of downloads from scripted servers.
#![allow(clippy::unwrap_used)]

use std::{io::Read, net::TcpListener, thread::JoinHandle};

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
    // With its length and without.
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
fn pauses_double_with_jitter() {
    let retries = RetryPolicy::default();
    for (attempts, most) in [(1, 0.25), (2, 0.5), (5, 4.0), (20, 20.0), (u32::MAX, 20.0)] {
        let wait = retries.wait(attempts).as_secs_f64();
        assert!(wait <= most && wait >= most / 2.0, "{attempts}: {wait}");
    }
}
