//! HTTP requests of probes and hooks.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use longshore_model::release;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};

use super::{MAX_OUTPUT, Outcome, ProbeError, tcp, tls};

/// Maximum number of redirects, as in Go's client.
const MAX_REDIRECTS: usize = 10;

/// Characters of a path or query that a request's target cannot contain.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// A GET request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpGet {
    scheme: Scheme,
    host: String,
    port: u16,
    /// Path and query.
    target: String,
    /// The headers, including `Host`.
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    status: StatusCode,
    /// At most [`MAX_OUTPUT`] bytes.
    body: String,
}

/// The reason why a request has no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HttpError {
    /// No response was received.
    Request(String),
    /// The connection failed while the body was read.
    Body(String),
}

impl HttpGet {
    /// Builds a request. Headers that are not set get the kubelet's values.
    pub(super) fn new<'h>(
        scheme: Scheme,
        host: String,
        port: u16,
        path: &str,
        headers: impl Iterator<Item = (&'h str, &'h str)>,
        purpose: &str,
    ) -> Result<Self, String> {
        let mut own = None;
        let mut all = Vec::new();
        for (name, value) in headers {
            let bad = || format!("net/http: invalid header field {name:?}");
            let name = HeaderName::try_from(name).map_err(|_| bad())?;
            let value = HeaderValue::try_from(value).map_err(|_| bad())?;
            if name == header::HOST {
                own.get_or_insert(value);
            } else {
                all.push((name, value));
            }
        }
        let set = |name: &HeaderName| all.iter().any(|(known, _)| known == name);
        let (has_agent, has_accept) = (set(&header::USER_AGENT), set(&header::ACCEPT));
        // An empty value means that the header is not sent.
        all.retain(|(name, value)| {
            !(*name == header::ACCEPT || *name == header::USER_AGENT) || !value.is_empty()
        });
        let text = |text: String| HeaderValue::try_from(text).map_err(|error| error.to_string());
        if !has_agent {
            let (major, minor) = (release::MAJOR, release::MINOR);
            let agent = format!("kube-{purpose}/{major}.{minor}");
            all.push((header::USER_AGENT, text(agent)?));
        }
        if !has_accept {
            all.push((header::ACCEPT, HeaderValue::from_static("*/*")));
        }
        let default = text(tcp::join(&host, port))?;
        all.push((header::HOST, own.unwrap_or(default)));
        all.push((header::CONNECTION, HeaderValue::from_static("close")));
        let path = path.split('#').next().unwrap_or_default();
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self {
            scheme,
            host,
            port,
            target: format!("{slash}{}", utf8_percent_encode(path, ESCAPED)),
            headers: all,
        })
    }

    /// Returns the same request without TLS.
    pub(crate) fn without_tls(&self) -> Self {
        let mut request = self.clone();
        request.scheme = Scheme::Http;
        request
            .headers
            .retain(|(name, _)| *name != header::AUTHORIZATION);
        request
    }

    /// Returns host and port.
    pub(crate) fn authority(&self) -> String {
        tcp::join(&self.host, self.port)
    }

    fn url(&self) -> String {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        format!("{scheme}://{}{}", self.authority(), self.target)
    }

    /// Returns the request that follows a redirect, or `None` if it leads to another host.
    fn redirected(&self, location: &str) -> Option<Self> {
        let location: Uri = location.parse().ok()?;
        if location.host().is_some_and(|host| host != self.host) {
            return None;
        }
        let mut request = self.clone();
        match location.scheme_str() {
            Some("http") => request.scheme = Scheme::Http,
            Some("https") => request.scheme = Scheme::Https,
            Some(_) => return None,
            None => {}
        }
        if location.host().is_some() {
            request.port = location.port_u16().unwrap_or(match request.scheme {
                Scheme::Http => 80,
                Scheme::Https => 443,
            });
            let host = HeaderValue::try_from(request.authority()).ok()?;
            for (name, value) in &mut request.headers {
                if *name == header::HOST {
                    *value = host.clone();
                }
            }
        }
        let target = location.path_and_query()?.as_str();
        request.target = if target.starts_with('/') {
            target.to_owned()
        } else {
            let path = self.target.split('?').next().unwrap_or_default();
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{target}")
        };
        Some(request)
    }
}

/// Performs a probe.
pub(super) async fn probe(request: &HttpGet, timeout: Duration) -> Result<Outcome, ProbeError> {
    match get(request, timeout).await {
        Ok(Response { status, .. }) if status.is_success() => Ok(Outcome::Success),
        Ok(Response { status, body }) if status.is_redirection() => Ok(Outcome::Warning(format!(
            "Probe terminated redirects, Response body: {body}"
        ))),
        // The body may contain secrets.
        Ok(Response { status, .. }) => Ok(Outcome::Failure(format!(
            "HTTP probe failed with statuscode: {}",
            status.as_u16()
        ))),
        Err(HttpError::Request(message)) => Ok(Outcome::Failure(message)),
        Err(HttpError::Body(message)) => Err(ProbeError {
            state: "failure",
            message,
        }),
    }
}

/// Sends a request and follows redirects to the same host.
pub(crate) async fn get(request: &HttpGet, timeout: Duration) -> Result<Response, HttpError> {
    let deadline = tokio::time::Instant::now() + timeout;
    let mut request = request.clone();
    for _ in 0..=MAX_REDIRECTS {
        let failed = |error: &str| HttpError::Request(format!("Get {:?}: {error}", request.url()));
        let exchange = tokio::time::timeout_at(deadline, send(&request)).await;
        let (response, _connection) = match exchange {
            Ok(Ok(received)) => received,
            Ok(Err(message)) => return Err(failed(&message)),
            Err(_) => {
                return Err(failed(
                    "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
                ));
            }
        };
        let status = response.status();
        let location = response.headers().get(header::LOCATION);
        let location = location.and_then(|value| value.to_str().ok());
        if matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
            && let Some(next) = location.and_then(|location| request.redirected(location))
        {
            request = next;
            continue;
        }
        let body = read_body(response.into_body());
        return match tokio::time::timeout_at(deadline, body).await {
            Ok(Ok(body)) => Ok(Response { status, body }),
            Ok(Err(message)) => Err(HttpError::Body(message)),
            Err(_) => Err(HttpError::Body(
                "context deadline exceeded (Client.Timeout or context cancellation while \
                 reading body)"
                    .to_owned(),
            )),
        };
    }
    Err(HttpError::Request(format!(
        "Get {:?}: stopped after {MAX_REDIRECTS} redirects",
        request.url()
    )))
}

async fn read_body(mut body: Incoming) -> Result<String, String> {
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| "unexpected EOF".to_owned())?;
        if let Some(data) = frame.data_ref() {
            let left = MAX_OUTPUT - all.len();
            all.extend_from_slice(&data[..data.len().min(left)]);
            if all.len() == MAX_OUTPUT {
                break;
            }
        }
    }
    Ok(String::from_utf8_lossy(&all).into_owned())
}

/// The task of a connection. The connection ends when the task is dropped.
type Connection = JoinSet<()>;

async fn send(request: &HttpGet) -> Result<(hyper::Response<Incoming>, Connection), String> {
    let stream = tcp::connect(&request.host, request.port).await?;
    match request.scheme {
        Scheme::Http => exchange(request, stream).await,
        Scheme::Https => exchange(request, tls::handshake(&request.host, stream).await?).await,
    }
}

async fn exchange(
    request: &HttpGet,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<(hyper::Response<Incoming>, Connection), String> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| text(&error))?;
    let mut task = JoinSet::new();
    task.spawn(async move {
        // The response reports errors.
        let _ = connection.await;
    });
    let mut built = Request::get(&request.target);
    for (name, value) in &request.headers {
        built = built.header(name, value);
    }
    let built = built
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let response = sender.send_request(built).await;
    Ok((response.map_err(|error| text(&error))?, task))
}

fn text(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return "EOF".to_owned();
    }
    if error.is_parse() {
        return format!("net/http: HTTP/1.x transport connection broken: {error}");
    }
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(error) = inner.downcast_ref::<std::io::Error>() {
            return format!("read tcp: read: {}", tcp::system_text(error));
        }
        source = inner.source();
    }
    error.to_string()
}
