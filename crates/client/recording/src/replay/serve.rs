//! Answers a request with the recorded response.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures::stream;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use tokio::time::{Instant, sleep_until};

use crate::{
    content::Content,
    line::End,
    listen::{BoxError, ResponseBody, full, read_body, refuse},
    player::{Decision, Player},
    recording::{Answer, Exchange, Recording, Stream},
    request::{self, parse_query},
    resource::Form,
};

/// The time for which a watch without a timeout stays open: a Kubernetes API server's minimum.
const WATCH_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// The longest timeout that a client can request.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// The reason in the Status of a request that was not recorded.
const NOT_RECORDED: &str = "NotRecorded";

/// The server of a recording.
pub(super) struct Responder {
    pub(super) recording: Arc<Recording>,
    pub(super) player: Arc<Mutex<Player>>,
    pub(super) timing: bool,
}

impl Responder {
    pub(super) async fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        let (head, body) = request.into_parts();
        let body = match read_body(body).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        let query = parse_query(head.uri.query().unwrap_or_default());
        let request = request::Request::new(
            (&head.method, head.uri.path(), &query),
            &head.headers,
            &body,
        );
        let decision = {
            let player = self.player.lock();
            player
                .unwrap_or_else(PoisonError::into_inner)
                .respond(&request)
        };
        let exchange = match decision {
            Decision::Serve(index) => self.recording.exchanges.get(index),
            Decision::Idle => {
                let mut response = Response::new(stream_body(Playback::idle(&request)));
                let json = HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                return response;
            }
            // Clients repeat requests that fail with 500, 503 or 504.
            Decision::NotRecorded(message) => {
                return refuse(StatusCode::NOT_IMPLEMENTED, NOT_RECORDED, &message);
            }
        };
        match exchange {
            Some(exchange) => self.replay(&request, exchange),
            None => refuse(StatusCode::NOT_IMPLEMENTED, NOT_RECORDED, "not recorded"),
        }
    }

    fn replay(&self, request: &request::Request, exchange: &Exchange) -> Response<ResponseBody> {
        let body = match &exchange.answer {
            Answer::Whole(content) => {
                full(content.as_ref().map_or_else(Bytes::new, Content::to_bytes))
            }
            Answer::Stream(stream) => stream_body(Playback::new(request, stream, self.timing)),
        };
        let mut response = Response::new(body);
        *response.status_mut() = exchange.head.status;
        *response.headers_mut() = exchange.head.headers.clone();
        // API servers send this header. Without it, clients cache responses, for example the
        // version of the server, and do not make all requests of the recording.
        let no_cache = HeaderValue::from_static("no-cache, private");
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, no_cache);
        response
    }
}

/// A stream that is being replayed.
struct Playback {
    /// The parts to send, each with its time.
    parts: VecDeque<(Instant, Bytes)>,
    /// The end time after the last part; `None` for never.
    end: Option<Instant>,
    /// The end time in any case; `None` for never.
    timeout: Option<Instant>,
}

impl Playback {
    fn new(request: &request::Request, stream: &Stream, timing: bool) -> Self {
        let now = Instant::now();
        let at = |after: u64| match timing {
            true => now.checked_add(Duration::from_millis(after)).unwrap_or(now),
            false => now,
        };
        let parts = stream.parts.iter();
        let parts = parts.map(|(after, content)| (at(*after), content.to_bytes()));
        let is_watch = request.form() == Form::Watch;
        let ends_with_error = stream.parts.last().is_some_and(|(_, content)| {
            let value = content.value();
            value.is_some_and(|event| event["type"] == "ERROR")
        });
        let end = match stream.end {
            // A server ends a watch after an error, and a log with its container. Otherwise
            // it has ended a watch at a timeout.
            Some((after, End::Server)) if timing || !is_watch || ends_with_error => Some(at(after)),
            _ => None,
        };
        Self {
            parts: parts.collect(),
            end,
            timeout: is_watch.then(|| timeout(request, now)),
        }
    }

    fn idle(request: &request::Request) -> Self {
        Self {
            parts: VecDeque::new(),
            end: None,
            timeout: Some(timeout(request, Instant::now())),
        }
    }

    /// The next part at its time; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let part = self.parts.pop_front();
        let (due, bytes) = match part {
            Some((due, bytes)) => (Some(due), Some(bytes)),
            None => (self.end, None),
        };
        let wait = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        let timeout = async {
            match self.timeout {
                Some(timeout) => sleep_until(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = wait => bytes,
            () = timeout => None,
        }
    }
}

/// Returns the time at which a watch ends.
fn timeout(request: &request::Request, now: Instant) -> Instant {
    let seconds = request.parameter("timeoutSeconds");
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    let timeout = match seconds {
        None | Some(0) => WATCH_TIMEOUT,
        Some(seconds) => Duration::from_secs(seconds).min(MAX_TIMEOUT),
    };
    now.checked_add(timeout).unwrap_or(now)
}

fn stream_body(playback: Playback) -> ResponseBody {
    let parts = stream::unfold(playback, |mut playback| async {
        let bytes = playback.next().await?;
        Some((Ok::<_, BoxError>(Frame::data(bytes)), playback))
    });
    StreamBody::new(parts).boxed_unsync()
}
