//! A real S3 server for tests: it checks signatures and their expiry, stores objects as
//! files, and fails on demand. Dropping the value stops the server.
#![allow(dead_code, reason = "each test uses only a part of it")]

use std::{
    collections::VecDeque,
    io,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use http_body_util::BodyExt;
use hyper::{Request, Response, StatusCode, body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use s3s::{auth::SimpleAuth, service::S3ServiceBuilder};

pub(crate) const BUCKET: &str = "bundles-of-tests";
const KEY: &str = "AKIDTESTS";
pub(crate) const SECRET: &str = "hush-not-for-eyes";

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The way in which a request fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The request is handled.
    Pass,
    /// The server responds with this code.
    Answer(u16),
    /// The server responds with this code, and asks to wait for these seconds.
    Wait(u16, u32),
    /// The server responds with this code, and with an error of this name and message.
    Refuse(u16, &'static str, &'static str),
    /// The server sends half of the response's body, and ends the connection.
    Half,
    /// The server sends half of the response's body, and then nothing.
    Stall,
    /// The server ends the connection in the middle of the request's body.
    HalfRequest,
    /// The server does not respond.
    Silence,
}

#[derive(Default)]
struct State {
    /// Method, path and query of each request.
    seen: Vec<String>,
    /// Faults of requests that contain this word, in sequence.
    faults: VecDeque<(&'static str, Fault)>,
    /// The number of parts that are accepted before every connection is closed.
    takes: Option<usize>,
    /// The requests in progress, and the tasks that wait for their end.
    busy: usize,
    waiting: usize,
}

pub(crate) struct S3 {
    folder: tempfile::TempDir,
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    // Dropping it stops the server.
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl S3 {
    /// Starts a server with one bucket.
    pub(crate) fn start() -> Self {
        Self::start_at("127.0.0.1")
    }

    /// Starts a server on another of this machine's addresses.
    pub(crate) fn start_at(host: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(folder.path()).unwrap());
        builder.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let service = builder.build();
        let listener = TcpListener::bind((host, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
        let shared = Arc::clone(&state);
        let root = folder.path().to_owned();
        let serve = async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (socket, _) = tokio::select! {
                    accepted = listener.accept() => accepted.unwrap(),
                    _ = &mut stopped => break,
                };
                let (service, state) = (service.clone(), Arc::clone(&shared));
                let root = root.clone();
                let answer = service_fn(move |request| {
                    let (service, state) = (service.clone(), Arc::clone(&state));
                    let root = root.clone();
                    async move { answer(service, &state, &root, request).await }
                });
                tokio::spawn(async move {
                    let connections =
                        hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let _ = connections
                        .serve_connection(TokioIo::new(socket), answer)
                        .await;
                });
            }
        };
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(serve);
            runtime.shutdown_background();
        });
        Self {
            folder,
            address,
            state,
            _stop: stop,
        }
    }

    /// The environment variables with the server's address and credentials.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://{}", self.address);
        let settings = [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET),
            ("AWS_REGION", "us-east-1"),
        ];
        settings
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }

    /// An object's file.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.folder.path().join(BUCKET).join(path)
    }

    /// Makes requests that contain this word fail, one for each fault.
    pub(crate) fn fail(&self, word: &'static str, faults: &[Fault]) {
        let faults = faults.iter().map(|fault| (word, fault.clone()));
        self.state.lock().unwrap().faults.extend(faults);
    }

    /// Removes the faults that have not occurred yet.
    pub(crate) fn forget_faults(&self) {
        self.state.lock().unwrap().faults.clear();
    }

    /// The faults that have not occurred yet.
    pub(crate) fn faults(&self) -> usize {
        self.state.lock().unwrap().faults.len()
    }

    /// Accepts this many parts, then closes every connection.
    pub(crate) fn take_parts(&self, parts: usize) {
        self.state.lock().unwrap().takes = Some(parts);
    }

    /// Waits until the server is idle, then accepts all parts again.
    pub(crate) fn take_all(&self) {
        let mut quiet = 0;
        while quiet < 20 {
            std::thread::sleep(POLL_INTERVAL);
            let state = self.state.lock().unwrap();
            quiet = match state.busy + state.waiting {
                0 => quiet + 1,
                _ => 0,
            };
        }
        self.state.lock().unwrap().takes = None;
    }

    /// The requests since the last call, as `PUT /bucket/path?partNumber`.
    pub(crate) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().seen)
    }

    /// Parts of uploads that were neither completed nor aborted.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with(".upload"))
            .collect()
    }
}

async fn answer(
    service: s3s::service::S3Service,
    state: &Mutex<State>,
    root: &Path,
    request: Request<Incoming>,
) -> io::Result<Response<s3s::Body>> {
    let is_part = request.uri().to_string().contains("partNumber=");
    let taken = {
        let mut now = state.lock().unwrap();
        match now.takes {
            Some(0) => None,
            takes => {
                now.takes = takes.map(|parts| parts - usize::from(is_part));
                Some(Counted::new(state, &mut now, |state| &mut state.busy))
            }
        }
    };
    if taken.is_some() {
        return answer_one(service, state, root, request).await;
    }
    // Closes the connection after the responses to the accepted requests.
    let _waiting = {
        let mut now = state.lock().unwrap();
        Counted::new(state, &mut now, |state| &mut state.waiting)
    };
    while state.lock().unwrap().busy > 0 {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Err(io::ErrorKind::ConnectionReset.into())
}

/// Counts a request as in progress while its connection exists.
struct Counted<'a>(&'a Mutex<State>, fn(&mut State) -> &mut usize);

impl<'a> Counted<'a> {
    fn new(state: &'a Mutex<State>, now: &mut State, of: fn(&mut State) -> &mut usize) -> Self {
        *of(now) += 1;
        Self(state, of)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        *self.1(&mut self.0.lock().unwrap()) -= 1;
    }
}

async fn answer_one(
    service: s3s::service::S3Service,
    state: &Mutex<State>,
    root: &Path,
    request: Request<Incoming>,
) -> io::Result<Response<s3s::Body>> {
    let line = format!("{} {}", request.method(), request.uri());
    let fault = {
        let mut state = state.lock().unwrap();
        state.seen.push(line.clone());
        match state.faults.front() {
            Some((word, _)) if line.contains(word) => state.faults.pop_front(),
            _ => None,
        }
    };
    if let Some((_, Fault::Silence)) = fault {
        return std::future::pending().await;
    }
    if let Some((_, Fault::HalfRequest)) = fault {
        let _ = request.into_body().frame().await;
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    if let Some((_, Fault::Wait(status, seconds))) = fault {
        let _ = request.into_body().collect().await;
        let mut response = refused(status, "SlowDown", "Please reduce your request rate");
        let seconds = seconds.to_string().parse().unwrap();
        response.headers_mut().insert("retry-after", seconds);
        return Ok(response);
    }
    if let Some((_, Fault::Refuse(status, code, message))) = fault {
        let _ = request.into_body().collect().await;
        return Ok(refused(status, code, message));
    }
    if let Some((_, Fault::Answer(status))) = fault {
        // Reads the body, as a busy server does: otherwise the client gets a connection
        // reset.
        let _ = request.into_body().collect().await;
        // A part that is being written when an upload is aborted would remain, as in S3.
        for _ in 0..500 {
            if state.lock().unwrap().busy <= 1 {
                break;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let mut response = Response::new(s3s::Body::from("<html>busy</html>".to_owned()));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        return Ok(response);
    }
    // The library creates buckets on the first write; S3 does not.
    if request.uri().path().split('/').nth(1) != Some(BUCKET) {
        return Ok(missing(
            "NoSuchBucket",
            "The specified bucket does not exist",
        ));
    }
    // The library reports an unknown upload as belonging to another user.
    let query = request.uri().query().unwrap_or_default();
    let id = query
        .split('&')
        .find_map(|part| part.strip_prefix("uploadId="));
    if id.is_some_and(|id| !root.join(format!(".upload-{id}.json")).exists()) {
        let _ = request.into_body().collect().await;
        return Ok(missing(
            "NoSuchUpload",
            "The specified multipart upload does not exist",
        ));
    }
    let response = service.call(request.map(s3s::Body::from)).await;
    let response = response.unwrap_or_else(|error| panic!("{line}: {error:?}"));
    let ends = match fault {
        Some((_, Fault::Half)) => true,
        Some((_, Fault::Stall)) => false,
        _ => return Ok(response),
    };
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let half = bytes.slice(..bytes.len() / 2);
    // The promised length never arrives: hyper closes the connection.
    let frames = futures::stream::unfold(Some(half), move |half| async move {
        match half {
            Some(half) => Some((Ok(hyper::body::Frame::data(half)), None)),
            None if ends => Some((Err(io::Error::from(io::ErrorKind::ConnectionReset)), None)),
            None => std::future::pending().await,
        }
    });
    let body = http_body_util::StreamBody::new(frames);
    Ok(Response::from_parts(
        parts,
        s3s::Body::http_body_unsync(body),
    ))
}

fn missing(code: &str, message: &str) -> Response<s3s::Body> {
    refused(404, code, message)
}

fn refused(status: u16, code: &str, message: &str) -> Response<s3s::Body> {
    let words = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
    let mut response = Response::new(s3s::Body::from(words));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}
