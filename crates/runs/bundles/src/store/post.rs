//! Posts a small message to a URL that may be secret.

use std::time::Duration;

use reqwest::{
    StatusCode, Url,
    header::{CONTENT_TYPE, RETRY_AFTER},
};

use super::{SignedUrl, http, reason::innermost};

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The number of bytes of an error response to read.
const LONGEST_RESPONSE: usize = 300;

/// The reason why a message was not accepted. The text does not contain the URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostError {
    /// The problem.
    pub problem: String,
    /// True if the same request may succeed later.
    pub is_temporary: bool,
    /// The time after which to repeat the request, if the server specifies one.
    pub retry_after: Option<Duration>,
}

impl PostError {
    fn new(problem: impl Into<String>, is_temporary: bool) -> Self {
        Self {
            problem: problem.into(),
            is_temporary,
            retry_after: None,
        }
    }
}

/// The host of an HTTP URL.
///
/// # Errors
/// The rule that the URL violates.
pub fn check_url(url: &str) -> Result<String, &'static str> {
    let parsed = Url::parse(url).map_err(|_| "it is not a URL: use https://HOST/PATH")?;
    match (parsed.scheme(), parsed.host_str()) {
        ("http" | "https", Some(host)) => Ok(host.to_owned()),
        _ => Err("use an http or https URL"),
    }
}

/// Posts JSON once. Redirects are not followed.
///
/// # Errors
/// The server does not answer, or refuses the message.
pub async fn post_json(url: &SignedUrl, body: Vec<u8>) -> Result<(), PostError> {
    let client = http::client().map_err(|error| PostError::new(innermost(&error), false))?;
    let parsed = Url::parse(url.secret());
    let parsed = parsed.map_err(|_| PostError::new("the URL is not valid", false))?;
    let request = client.post(parsed).header(CONTENT_TYPE, "application/json");
    let sent = request.timeout(TIMEOUT).body(body).send().await;
    let mut response = sent.map_err(|error| {
        let error = error.without_url();
        PostError::new(innermost(&error), true)
    })?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let mut text = Vec::new();
    while text.len() < LONGEST_RESPONSE
        && let Ok(Some(chunk)) = response.chunk().await
    {
        text.extend_from_slice(&chunk);
    }
    text.truncate(LONGEST_RESPONSE);
    let text = String::from_utf8_lossy(&text);
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    let seconds = response.headers().get(RETRY_AFTER);
    let seconds = seconds.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    // Removes the URL, because a server may repeat it in its response.
    let text = match url.secret().split_once("://") {
        Some((_, rest)) if text.contains(rest) => String::new(),
        _ => format!(" {}", text.trim()),
    };
    let mut error = PostError::new(
        format!("it answered {status}{}", text.trim_end()),
        is_temporary(status),
    );
    error.retry_after = seconds.map(Duration::from_secs);
    Err(error)
}

/// Returns true if the request may succeed later.
fn is_temporary(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read as _, Write as _};

    use super::*;

    /// Answers one request with this text, and returns the request.
    fn server(answer: &'static str) -> (SignedUrl, std::thread::JoinHandle<String>) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut part = [0; 1024];
            while !String::from_utf8_lossy(&request).contains("{}") {
                let read = socket.read(&mut part).unwrap();
                request.extend_from_slice(&part[..read]);
            }
            socket.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&request).into_owned()
        });
        let url = SignedUrl::new(format!("http://127.0.0.1:{port}/hush/x?token=hush"));
        (url, served)
    }

    #[tokio::test]
    async fn errors_say_whether_to_repeat_and_hide_the_url() {
        let (url, served) = server("HTTP/1.1 204 No Content\r\n\r\n");
        post_json(&url, b"{}".to_vec()).await.unwrap();
        let request = served.join().unwrap();
        assert!(
            request.starts_with("POST /hush/x?token=hush HTTP/1.1"),
            "{request}"
        );
        assert!(request.contains("application/json"), "{request}");
        for (answer, is_temporary) in [
            (
                "HTTP/1.1 404 Not Found\r\ncontent-length: 10\r\n\r\nno_service",
                false,
            ),
            (
                "HTTP/1.1 429 Too Many\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n",
                true,
            ),
            (
                "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n",
                false,
            ),
        ] {
            let (url, served) = server(answer);
            let error = post_json(&url, b"{}".to_vec()).await.unwrap_err();
            assert_eq!(error.is_temporary, is_temporary, "{error:?}");
            assert_eq!(
                error.retry_after,
                answer.contains("429").then(|| Duration::from_secs(7))
            );
            assert_eq!(error.problem.contains("no_service"), answer.contains("404"));
            served.join().unwrap();
        }
        let gone = SignedUrl::new("http://127.0.0.1:1/hush?token=hush");
        let error = post_json(&gone, b"{}".to_vec()).await.unwrap_err();
        assert!(
            error.is_temporary && !error.problem.contains("hush"),
            "{error:?}"
        );
    }

    #[test]
    fn only_http_urls_are_accepted() {
        assert_eq!(
            check_url("https://hooks.example/x").unwrap(),
            "hooks.example"
        );
        for wrong in [
            "",
            "hooks.example",
            "ftp://x/y",
            "file:///etc/passwd",
            "http://",
        ] {
            assert!(check_url(wrong).is_err(), "{wrong}");
        }
    }
}
