//! The record of a request, which creates the events of its stages.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::{HeaderMap, HeaderValue, Response, header, request::Parts};
use jiff::Timestamp;
use longshore_engine::SharedClock;
use longshore_model::{MAX_PROBLEM_BYTES, MAX_PROBLEMS, Status, StatusReason, shorten};

use super::{
    AuditLog, Log,
    bodies::{self, Copied},
    event::{Event, Head},
    level::{Level, Stage},
    policy,
};
use crate::{
    authorization::Attributes,
    body::Body,
    input::{self, RequestBody},
    user::User,
};

/// Bytes of a user agent that are recorded, as in Kubernetes.
const USER_AGENT: usize = 1024;

/// A request that is recorded. The event of its completion is created when the last reference is
/// dropped: with the response, or at the end of its stream.
pub(crate) struct Record {
    log: Arc<Log>,
    decision: policy::Decision,
    head: Arc<Head>,
    /// True if the start of the response also has an event.
    is_long_running: bool,
    clock: SharedClock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    impersonated: Option<Arc<User>>,
    status: Option<Status>,
    annotations: BTreeMap<String, String>,
    request: Option<Copied>,
    response: Option<Copied>,
    last: Last,
}

/// The last event of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Last {
    #[default]
    Complete,
    Panic,
    /// The event was already created.
    Created,
}

/// A request as it arrives.
pub(crate) struct Request<'a> {
    pub(crate) id: &'a HeaderValue,
    pub(crate) parts: &'a Parts,
    pub(crate) attributes: Attributes,
    pub(crate) remote: Option<IpAddr>,
    pub(crate) clock: SharedClock,
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").finish_non_exhaustive()
    }
}

impl AuditLog {
    /// Begins the record of a user's request; `None` if the policy does not
    /// record it.
    pub(crate) fn begin(&self, request: Request<'_>, user: &Arc<User>) -> Option<Arc<Record>> {
        let Request {
            id,
            parts,
            attributes,
            remote,
            clock,
        } = request;
        let received = clock.now();
        let decision = self.0.policy.decide(user, &attributes)?;
        let copies = matches!(
            attributes.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        ) && attributes.path.is_none();
        let has_object = matches!(attributes.verb.as_str(), "create" | "update");
        let copies = copies && (has_object || decision.level >= Level::Request);
        let request = copies.then(|| Copied::of_type(input::media_type(&parts.headers)));
        let is_long_running = is_long_running(&attributes);
        let uri = parts.uri.path_and_query();
        let head = Head {
            id: String::from_utf8_lossy(id.as_bytes()).into_owned(),
            level: decision.level,
            omits_managed_fields: decision.omits_managed_fields,
            uri: uri.map(|uri| uri.as_str().to_owned()).unwrap_or_default(),
            user: user.clone(),
            sources: super::sources::addresses(&parts.headers, remote),
            user_agent: user_agent(&parts.headers),
            version: version(parts.uri.path()),
            attributes,
            received,
        };
        let record = Record {
            log: self.0.clone(),
            decision,
            head: Arc::new(head),
            is_long_running,
            clock,
            state: Mutex::new(State {
                request,
                ..State::default()
            }),
        };
        record.submit(Stage::RequestReceived, received);
        Some(Arc::new(record))
    }
}

impl Record {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn impersonated(&self, user: &Arc<User>) {
        self.state().impersonated = Some(user.clone());
    }

    /// Records the decision of authorization.
    pub(crate) fn authorized(&self, is_allowed: bool, reason: &str) {
        let decision = if is_allowed { "allow" } else { "forbid" };
        self.annotate("authorization.k8s.io/decision", decision);
        self.annotate("authorization.k8s.io/reason", reason);
    }

    /// Adds an annotation, unless it exists.
    pub(crate) fn annotate(&self, key: impl Into<String>, value: &str) {
        let mut state = self.state();
        if state.annotations.len() >= MAX_PROBLEMS {
            return;
        }
        let entry = state.annotations.entry(key.into());
        entry.or_insert_with(|| {
            let mut value = value.to_owned();
            shorten(&mut value, MAX_PROBLEM_BYTES);
            value
        });
    }

    /// Records that the request has no valid credentials.
    pub(crate) fn unauthenticated(&self, attempted: &[&str]) {
        let message = match attempted {
            [] => "Authentication failed, no credentials provided".to_owned(),
            attempted => format!("Authentication failed, attempted: {}", attempted.join(", ")),
        };
        {
            let mut state = self.state();
            state.status = Some(Status::failure(StatusReason::Unauthorized, message));
            state.last = Last::Created;
        }
        self.submit(Stage::ResponseStarted, self.clock.now());
    }

    /// Records that a handler panicked.
    pub(crate) fn panicked(&self) {
        let message = "the server met a fault of its own";
        let mut state = self.state();
        state.status = Some(Status::failure(StatusReason::InternalError, message));
        state.last = Last::Panic;
    }

    /// Returns the request body, whose parts are copied if the events need them.
    pub(crate) fn observe_request(&self, body: RequestBody) -> RequestBody {
        match self.state().request.clone() {
            Some(copy) => bodies::observed(body, copy),
            None => body,
        }
    }

    /// Records a response. A response that is a stream completes with it.
    pub(crate) fn answered(self: &Arc<Self>, response: &mut Response<Body>) {
        {
            let mut state = self.state();
            if state.last != Last::Complete {
                return;
            }
            let code = response.status().as_u16();
            let mut status = sent_status(response).unwrap_or_else(|| Status {
                status: String::new(),
                ..Status::success()
            });
            status.code = code;
            state.status = Some(status);
        }
        if self.is_long_running {
            self.submit(Stage::ResponseStarted, self.clock.now());
        }
        let copies = !self.is_long_running
            && self.head.level == Level::RequestResponse
            && self.head.attributes.path.is_none();
        if copies {
            let copy = Copied::of_type(media_type(response));
            self.state().response = Some(copy.clone());
            let record = self.clone();
            observe(response, move |part| {
                let _until_the_end = &record;
                copy.add(part);
            });
        } else if self.is_long_running {
            let record = self.clone();
            observe(response, move |_| {
                let _until_the_end = &record;
            });
        }
    }

    fn submit(&self, stage: Stage, at: Timestamp) {
        if self.decision.omitted.contains(stage) {
            return;
        }
        let state = self.state();
        let is_first = stage == Stage::RequestReceived;
        let event = Event {
            head: self.head.clone(),
            stage,
            at,
            impersonated: state.impersonated.clone(),
            status: state.status.clone(),
            annotations: state.annotations.clone(),
            request: state.request.clone().filter(|_| !is_first),
            response: state.response.clone(),
        };
        drop(state);
        self.log.writer.submit(event);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let stage = {
            let mut state = self.state();
            if state.status.is_none() {
                state.status = Some(Status {
                    code: 200,
                    message: "Connection closed early".into(),
                    ..Status::success()
                });
            }
            match state.last {
                Last::Complete => Stage::ResponseComplete,
                Last::Panic => Stage::Panic,
                Last::Created => return,
            }
        };
        self.submit(stage, self.clock.now());
    }
}

fn observe(response: &mut Response<Body>, see: impl FnMut(&bytes::Bytes) + Send + 'static) {
    let body = std::mem::replace(response.body_mut(), Body::empty());
    *response.body_mut() = body.observed(see);
}

/// Returns true if the response of a request may take long, by Kubernetes' rules.
fn is_long_running(request: &Attributes) -> bool {
    const SUBRESOURCES: [&str; 5] = ["attach", "exec", "proxy", "log", "portforward"];
    request.path.is_none()
        && (matches!(request.verb.as_str(), "watch" | "proxy")
            || SUBRESOURCES.contains(&request.subresource.as_str()))
}

/// The version in a path of a resource.
fn version(path: &str) -> String {
    let mut parts = path.trim_matches('/').split('/');
    let version = match parts.next() {
        Some("api") => parts.next(),
        Some("apis") => parts.nth(1),
        _ => None,
    };
    version.unwrap_or_default().to_owned()
}

fn user_agent(headers: &HeaderMap) -> String {
    let agent = headers.get(header::USER_AGENT);
    let agent = agent.map(|agent| String::from_utf8_lossy(agent.as_bytes()));
    let mut agent = agent.unwrap_or_default().into_owned();
    if agent.len() > USER_AGENT {
        agent.truncate(agent.floor_char_boundary(USER_AGENT));
        agent.push_str("...TRUNCATED");
    }
    agent
}

/// The `Status` that a response contains.
fn sent_status(response: &Response<Body>) -> Option<Status> {
    let body = response.body().buffer()?;
    body.starts_with(br#"{"kind":"Status","#)
        .then(|| serde_json::from_slice(body).ok())
        .flatten()
}

fn media_type(response: &Response<Body>) -> String {
    let value = response.headers().get(header::CONTENT_TYPE);
    let text = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = text.split(';').next().unwrap_or_default();
    media_type.trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::Method;

    use super::*;
    use crate::query::Query;

    #[test]
    fn long_requests() {
        let is_long = |path: &str, query: &str| {
            let query = Query::parse(Some(query)).unwrap();
            is_long_running(&Attributes::of_request(&Method::GET, path, &query))
        };
        let pod = "/api/v1/namespaces/a/pods/p";
        assert!(is_long("/api/v1/pods", "watch=1"));
        assert!(is_long(&format!("{pod}/log"), ""));
        assert!(is_long(&format!("{pod}/exec"), ""));
        assert!(!is_long(pod, ""));
        assert!(!is_long("/healthz", "watch=1"));
    }

    #[test]
    fn versions_of_paths() {
        assert_eq!(version("/api/v1/pods"), "v1");
        assert_eq!(version("/apis/apps/v1/deployments"), "v1");
        assert_eq!(version("/healthz"), "");
    }

    #[test]
    fn long_user_agents_are_truncated() {
        let mut headers = HeaderMap::new();
        assert_eq!(user_agent(&headers), "");
        headers.insert(header::USER_AGENT, "x".repeat(1025).parse().unwrap());
        let agent = user_agent(&headers);
        assert_eq!(agent.len(), 1024 + "...TRUNCATED".len());
    }
}
