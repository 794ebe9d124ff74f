//! Responds to requests. Errors, panics and timeouts become `Status` objects here, and fault
//! injection rules are applied.

use std::{net::IpAddr, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt as _;
use http::{HeaderValue, Method, Request, Response, request::Parts};
use tokio::{sync::watch, time::timeout};

use crate::{
    aggregation::Forwarding,
    audit::{self, Record},
    auth::Caller,
    authorization::{Attributes, impersonated},
    body::Body,
    body_room,
    call::{Call, Shared},
    handlers::{self, aggregated},
    inject::{self, Decision, Effect},
    input::RequestBody,
    params, pretty,
    query::Query,
    reply,
    route::{BadPath, Resource, Route},
    status_error::StatusError,
    stopping::stopped,
    user::User,
    webhooks::Warnings,
};

/// Responds to requests. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Responder {
    pub(crate) shared: Arc<Shared>,
    /// The origin of requests, which determines how they are authenticated.
    pub(crate) caller: Caller,
    /// The client's address.
    pub(crate) remote: Option<IpAddr>,
    /// True if fault injection rules apply.
    pub(crate) applies_faults: bool,
    /// Becomes true when streams must end.
    pub(crate) stopping: watch::Receiver<bool>,
}

/// An injected fault closed the connection before there was a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection was dropped by a fault on demand")]
pub struct ConnectionDropped;

/// The reason why a request has no regular response.
enum Failure {
    StatusError(StatusError),
    Dropped,
}

impl From<StatusError> for Failure {
    fn from(error: StatusError) -> Self {
        Self::StatusError(error)
    }
}

impl Responder {
    pub(crate) async fn respond(
        self,
        request: Request<RequestBody>,
    ) -> Result<Response<Body>, ConnectionDropped> {
        let (parts, body) = request.into_parts();
        let is_pretty = pretty::is_wanted(&parts.uri, &parts.headers);
        let head = parts.method == Method::HEAD;
        let headers = parts.headers.clone();
        // The cluster's own components do not read the header.
        let is_recorded = self.shared.audit.get().is_some();
        let id = (self.applies_faults || is_recorded).then(|| audit::id_of(&headers));
        let mut record = None;
        let answer = self.answer(parts, body, (id.as_ref(), &mut record));
        let answered = AssertUnwindSafe(answer).catch_unwind().await;
        let mut response = match answered {
            Ok(Ok(response)) => response,
            Ok(Err(Failure::StatusError(error))) => reply::status_error(&error),
            Ok(Err(Failure::Dropped)) => return Err(ConnectionDropped),
            Err(_) => {
                tracing::error!("a handler panicked");
                if let Some(record) = &record {
                    record.panicked();
                }
                reply::status_error(&StatusError::internal("the server met a fault of its own"))
            }
        };
        if let Some(record) = record {
            record.answered(&mut response);
        }
        if let Some(id) = id {
            response.headers_mut().entry(audit::AUDIT_ID).or_insert(id);
        }
        if is_pretty {
            reply::indent(&mut response);
        }
        reply::finish(&mut response, &headers);
        if head {
            *response.body_mut() = Body::empty();
        }
        Ok(response)
    }

    async fn answer(
        self,
        parts: Parts,
        body: RequestBody,
        (id, record): (Option<&HeaderValue>, &mut Option<Arc<Record>>),
    ) -> Result<Response<Body>, Failure> {
        let path = parts.uri.path();
        let route = Route::parse(path);
        let authenticator = &self.shared.authenticator;
        let user = authenticator.authenticate(&self.caller, &parts.headers, route.as_ref().ok());
        let query = Query::parse(parts.uri.query());
        let mut body = body;
        if let (Some(log), Some(id)) = (self.shared.audit.get(), id) {
            let no_query = Query::default();
            let query = query.as_ref().unwrap_or(&no_query);
            let request = audit::Request {
                id,
                attributes: Attributes::of_request(&parts.method, path, query),
                parts: &parts,
                remote: self.remote,
                clock: self.shared.engine.shared_clock(),
            };
            match &user {
                Ok(user) => *record = log.begin(request, user),
                Err(_) => {
                    if let Some(record) = log.begin(request, &Arc::default()) {
                        record.unauthenticated(&self.caller.attempted(&parts.headers));
                    }
                }
            }
            if let Some(record) = record {
                body = record.observe_request(body);
            }
        }
        let (user, query) = (user?, query?);
        let shared = self.shared.clone();
        let tally = shared
            .metrics
            .begin(&parts.method, route.as_ref().ok(), &query);
        let audit = record.clone();
        let result = self.handle((parts, user, audit), route, query, body).await;
        match &result {
            Ok(response) => tally.done(response.status().as_u16()),
            Err(Failure::StatusError(error)) => tally.done(error.status().code),
            Err(Failure::Dropped) => {}
        }
        result
    }

    async fn handle(
        self,
        (mut parts, user, audit): (Parts, Arc<User>, Option<Arc<Record>>),
        route: Result<Route, BadPath>,
        query: Query,
        body: RequestBody,
    ) -> Result<Response<Body>, Failure> {
        let upgrade = parts.extensions.remove();
        let path = parts.uri.path();
        let authorizer = &self.shared.authorizer;
        let user = match impersonated(authorizer, &user, &parts.headers)? {
            Some(impersonated) => {
                let impersonated = Arc::new(impersonated);
                if let Some(record) = &audit {
                    record.impersonated(&impersonated);
                }
                impersonated
            }
            None => user,
        };
        if !authorizer.allows_everything(&user) {
            let attributes = Attributes::of_request(&parts.method, path, &query);
            let decision = authorizer.decide(&user, &attributes);
            if let Some(record) = &audit {
                record.authorized(decision.allowed, &decision.reason);
            }
            if !decision.allowed {
                return Err(attributes.forbidden(&user.name, &decision.reason).into());
            }
        } else if let Some(record) = &audit {
            record.authorized(true, "");
        }
        if let Ok(Route::ForTests(path)) = &route {
            if !self.shared.faults_endpoint {
                return Err(StatusError::unknown_path().into());
            }
            return Ok(
                handlers::test_paths::handle(&self.shared, &parts.method, path, body).await?,
            );
        }
        // Most requests cannot match a rule and need no copies.
        let attributes = self.may_fail(&query, path).then(|| {
            Arc::new(inject::Request {
                method: parts.method.clone(),
                path: path.to_owned(),
                query: query.clone(),
                route: route.as_ref().ok().cloned(),
                headers: parts.headers.clone(),
            })
        });
        let faults = &self.shared.faults;
        let decision = attributes
            .as_ref()
            .and_then(|attributes| faults.evaluate(&attributes.attributes()));
        let decision = decision.unwrap_or_default();
        if let Some(attributes) = &attributes {
            self.before(&decision, attributes).await?;
        }
        let aggregation = &self.shared.aggregation;
        let forwarding = aggregation.serves(&self.shared.engine, &parts.uri, self.remote);
        let call = Call {
            shared: self.shared.clone(),
            method: parts.method,
            query,
            headers: parts.headers,
            authority: parts.uri.authority().cloned(),
            user,
            stopping: self.stopping.clone(),
            upgrade,
            custom: None,
            sheltered: !self.applies_faults,
            warnings: Warnings::default(),
            audit,
        };
        let response = match forwarding {
            Some(forwarding) => forwarded_in_time(call, forwarding, (route.ok(), body)).await?,
            None => in_time(call, route, body).await?,
        };
        match attributes {
            Some(attributes) => self.after(decision, attributes, response),
            None => Ok(response),
        }
    }

    /// Returns true if a fault injection rule can apply: rules exist, or the request is a watch,
    /// which later rules can end.
    fn may_fail(&self, query: &Query, path: &str) -> bool {
        let watches = || query.flag("watch") == Some(true) || path.contains("/watch/");
        self.applies_faults && (self.shared.faults.has_rules() || watches())
    }

    /// Applies the effects that come before a request is handled or replace its handling.
    async fn before(
        &self,
        decision: &Decision,
        attributes: &inject::Request,
    ) -> Result<(), Failure> {
        if decision.delay > Duration::ZERO {
            tokio::select! {
                () = tokio::time::sleep(decision.delay) => {}
                () = stopped(self.stopping.clone()) => {}
            }
        }
        match &decision.effect {
            Some((effect, false)) => replace_response(effect, attributes),
            _ => Ok(()),
        }
    }

    /// Applies the effects on a response.
    fn after(
        &self,
        decision: Decision,
        attributes: Arc<inject::Request>,
        mut response: Response<Body>,
    ) -> Result<Response<Body>, Failure> {
        if let Some((effect, after)) = &decision.effect {
            if *after {
                replace_response(effect, &attributes)?;
            }
            if *effect == Effect::Garble {
                let body = std::mem::replace(response.body_mut(), Body::empty());
                *response.body_mut() = body.first_half();
            }
        }
        if attributes.attributes().verb == "watch" && response.status().is_success() {
            let body = std::mem::replace(response.body_mut(), Body::empty());
            *response.body_mut() = inject::guard(
                self.shared.faults.clone(),
                attributes,
                (decision.watch, decision.seen),
                body,
                self.stopping.clone(),
            );
        }
        Ok(response)
    }
}

/// Applies an effect that replaces the response.
fn replace_response(effect: &Effect, attributes: &inject::Request) -> Result<(), Failure> {
    match effect {
        Effect::Drop => Err(Failure::Dropped),
        effect => match inject::answer::status_error(effect, &attributes.attributes()) {
            Some(error) => Err(error.into()),
            None => Ok(()),
        },
    }
}

/// Handles a request within its time limit. Streams have no limit.
async fn in_time(call: Call, route: Result<Route, BadPath>, body: RequestBody) -> reply::Reply {
    let route = route.map_err(|problem| match problem {
        BadPath::Unknown => StatusError::unknown_path(),
        BadPath::Escape => {
            StatusError::bad_request("the path has a percent sign that begins no escape")
        }
        BadPath::Name(name) => StatusError::bad_request(format!(
            "Name parameter invalid: {name:?}: may not be '{name}'"
        )),
    })?;
    let streams = match &route {
        Route::Resource(resource) => is_stream(&call, resource),
        _ => false,
    };
    if streams {
        return handlers::dispatch(call, route, body).await;
    }
    let (body, _room) = body_room::counted(body, call.user.clone());
    let time = params::timeout(&call.query)?;
    match timeout(time, handlers::dispatch(call, route, body)).await {
        Ok(reply) => reply,
        Err(_) => Err(StatusError::timeout()),
    }
}

/// Forwards a request to an aggregated API server within its time limit.
async fn forwarded_in_time(
    call: Call,
    forwarding: Forwarding,
    (route, body): (Option<Route>, RequestBody),
) -> reply::Reply {
    let streams = match &route {
        Some(Route::Resource(resource)) => is_stream(&call, resource),
        _ => false,
    };
    if streams || aggregated::is_upgrade(&call) {
        return aggregated::forward(call, forwarding, body).await;
    }
    let time = params::timeout(&call.query)?;
    match timeout(time, aggregated::forward(call, forwarding, body)).await {
        Ok(reply) => reply,
        Err(_) => Err(StatusError::timeout()),
    }
}

fn is_stream(call: &Call, resource: &Resource) -> bool {
    let of_collection = resource.name.is_none() && call.query.flag("watch") == Some(true);
    resource.watch || of_collection || resource.subresource.as_deref() == Some("log")
}
