//! The server of a recorder or a replay: HTTP/1.1 on a loopback port, below a path that only the
//! kubeconfig contains.

use std::{fmt::Write as _, io, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use longshore_model::{Status, StatusReason};
use rand::TryRng as _;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};

use crate::{error::Error, kubeconfig::Kubeconfig};

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// The body of a response.
pub(crate) type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// Answers requests with the path on the cluster.
pub(crate) type Handler =
    Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response<ResponseBody>> + Send + Sync>;

/// The maximum size of a request's body, in bytes.
const MAX_REQUEST_BYTES: usize = 64 << 20;
/// The maximum number of open connections.
const MAX_CONNECTIONS: usize = 1024;
/// The time that a client has to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(300);

/// A server that listens until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    url: String,
    kubeconfig: Kubeconfig,
    _accepting: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(namespace: &str, handler: Handler) -> Result<Self, Error> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.map_err(Error::Listen)?;
        let address = listener.local_addr().map_err(Error::Listen)?;
        let prefix = format!("/{}", random_text().map_err(Error::Listen)?);
        let url = format!("http://{address}{prefix}");
        let kubeconfig = Kubeconfig::create(&url, namespace).map_err(Error::Listen)?;
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, prefix.into(), handler));
        Ok(Self {
            url,
            kubeconfig,
            _accepting: accepting,
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        self.kubeconfig.path()
    }
}

/// 128 random bits from the operating system, in hexadecimal.
fn random_text() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    let filled = rand::rngs::SysRng.try_fill_bytes(&mut bytes);
    filled.map_err(io::Error::other)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

async fn accept(listener: TcpListener, prefix: Arc<str>, handler: Handler) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let permit = room.clone().acquire_owned();
        let accepted = async { (permit.await, listener.accept().await) };
        tokio::select! {
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = accepted => match accepted {
                (Ok(permit), Ok((stream, _))) => {
                    connections.spawn(serve(stream, prefix.clone(), handler.clone(), permit));
                }
                (_, Err(error)) => {
                    // Probably out of file descriptors, which is temporary.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                // The semaphore is never closed.
                (Err(_), _) => return,
            },
        }
    }
}

async fn serve(
    stream: TcpStream,
    prefix: Arc<str>,
    handler: Handler,
    _permit: OwnedSemaphorePermit,
) {
    // Events are small and must be sent without delay.
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        let responding = without_prefix(&mut request, &prefix).then(|| handler(request));
        async move {
            let response = match responding {
                Some(responding) => responding.await,
                None => refuse(
                    StatusCode::NOT_FOUND,
                    "NotFound",
                    "the URL is not that of the kubeconfig, which has a random path",
                ),
            };
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = serving.await {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Removes the random prefix of the path; false if the path does not have it.
fn without_prefix(request: &mut Request<Incoming>, prefix: &str) -> bool {
    let target = request.uri().path_and_query();
    let target = target.map_or("", |target| target.as_str());
    let Some(rest) = target.strip_prefix(prefix) else {
        return false;
    };
    let rest = match rest.chars().next() {
        Some('/') => rest.to_owned(),
        None | Some('?') => format!("/{rest}"),
        Some(_) => return false,
    };
    match rest.parse() {
        Ok(uri) => {
            *request.uri_mut() = uri;
            true
        }
        Err(_) => false,
    }
}

/// Reads the body of a request.
pub(crate) async fn read_body(body: Incoming) -> Result<Bytes, Response<ResponseBody>> {
    let limited = http_body_util::Limited::new(body, MAX_REQUEST_BYTES);
    match limited.collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            &format!("the body has more than {MAX_REQUEST_BYTES} bytes"),
        )),
        Err(error) => Err(refuse(
            StatusCode::BAD_REQUEST,
            "BadRequest",
            &format!("the body cannot be read: {error}"),
        )),
    }
}

/// A body of known content.
pub(crate) fn full(content: impl Into<Bytes>) -> ResponseBody {
    let body = Full::new(content.into());
    body.map_err(|never| match never {}).boxed_unsync()
}

/// A response with an error of this server: a Kubernetes Status.
pub(crate) fn refuse(code: StatusCode, reason: &str, message: &str) -> Response<ResponseBody> {
    let status = Status {
        code: code.as_u16(),
        ..Status::failure(StatusReason::from_word(reason), message)
    };
    let text = serde_json::to_string(&status).unwrap_or_default();
    let mut response = Response::new(full(text));
    *response.status_mut() = code;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
