//! One request in, one response out. Faults become `Status` objects here, and
//! so do panics and requests that take too long; rules about faults on demand
//! come in here as well.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt as _;
use http::{Method, Request, Response, request::Parts};
use tokio::{sync::watch, time::timeout};

use crate::{
    auth::Caller,
    body::Body,
    call::{Call, Shared},
    fault::Fault,
    handlers,
    inject::{self, Effect, Verdict},
    input::{self, RequestBody},
    params, pretty,
    query::Query,
    reply,
    route::{BadPath, Resource, Route},
    stopping::stopped,
    user::User,
};

/// Answers requests. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Responder {
    pub(crate) shared: Arc<Shared>,
    /// Where its requests come from, which says how they are authenticated.
    pub(crate) caller: Caller,
    /// Whether faults on demand apply to it.
    pub(crate) feels_faults: bool,
    /// Becomes true when streams are to end.
    pub(crate) stopping: watch::Receiver<bool>,
}

/// A fault on demand took the connection away before there was an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection was dropped by a fault on demand")]
pub struct ConnectionDropped;

/// Why there is no answer of the usual kind.
enum Failure {
    Fault(Fault),
    Dropped,
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
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
        let answered = AssertUnwindSafe(self.answer(parts, body))
            .catch_unwind()
            .await;
        let mut response = match answered {
            Ok(Ok(response)) => response,
            Ok(Err(Failure::Fault(fault))) => reply::fault(&fault),
            Ok(Err(Failure::Dropped)) => return Err(ConnectionDropped),
            Err(_) => {
                tracing::error!("a handler panicked");
                reply::fault(&Fault::internal("the server met a fault of its own"))
            }
        };
        if is_pretty {
            reply::indent(&mut response);
        }
        reply::finish(&mut response, &headers);
        if head {
            *response.body_mut() = Body::empty();
        }
        Ok(response)
    }

    async fn answer(self, parts: Parts, body: RequestBody) -> Result<Response<Body>, Failure> {
        let path = parts.uri.path();
        let route = Route::parse(path);
        let authenticator = &self.shared.authenticator;
        let user = authenticator.authenticate(&self.caller, &parts.headers, route.as_ref().ok())?;
        let query = Query::parse(parts.uri.query())?;
        let shared = self.shared.clone();
        let tally = shared
            .metrics
            .begin(&parts.method, route.as_ref().ok(), &query);
        let result = self.handle((parts, user), route, query, body).await;
        match &result {
            Ok(response) => tally.done(response.status().as_u16()),
            Err(Failure::Fault(fault)) => tally.done(fault.status().code),
            Err(Failure::Dropped) => {}
        }
        result
    }

    async fn handle(
        self,
        (mut parts, user): (Parts, Arc<User>),
        route: Result<Route, BadPath>,
        query: Query,
        body: RequestBody,
    ) -> Result<Response<Body>, Failure> {
        let upgrade = parts.extensions.remove();
        let path = parts.uri.path();
        if let Ok(Route::Own(path)) = &route {
            if !self.shared.faults_endpoint {
                return Err(Fault::unknown_path().into());
            }
            let faults = &self.shared.faults;
            return Ok(handlers::faults::handle(faults, &parts.method, path, body).await?);
        }
        // Most requests have no fault to fear: they are spared the copies.
        let asked = self.may_fail(&query, path).then(|| {
            Arc::new(inject::Request {
                method: parts.method.clone(),
                path: path.to_owned(),
                query: query.clone(),
                route: route.as_ref().ok().cloned(),
                headers: parts.headers.clone(),
            })
        });
        let faults = &self.shared.faults;
        let verdict = asked
            .as_ref()
            .and_then(|asked| faults.judge(&asked.asked()));
        let verdict = verdict.unwrap_or_default();
        if let Some(asked) = &asked {
            self.before(&verdict, asked).await?;
        }
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
            sheltered: !self.feels_faults,
        };
        let response = in_time(call, route, body).await?;
        match asked {
            Some(asked) => self.after(verdict, asked, response),
            None => Ok(response),
        }
    }

    /// Whether a fault on demand may befall a request: there are rules, or it
    /// asks for a watch, which those to come may reach.
    fn may_fail(&self, query: &Query, path: &str) -> bool {
        let watches = || query.flag("watch") == Some(true) || path.contains("/watch/");
        self.feels_faults && (self.shared.faults.are_armed() || watches())
    }

    /// What rules do before a request is handled, or instead.
    async fn before(&self, verdict: &Verdict, asked: &inject::Request) -> Result<(), Failure> {
        if verdict.delay > Duration::ZERO {
            tokio::select! {
                () = tokio::time::sleep(verdict.delay) => {}
                () = stopped(self.stopping.clone()) => {}
            }
        }
        match &verdict.effect {
            Some((effect, false)) => strike(effect, asked),
            _ => Ok(()),
        }
    }

    /// What rules do to an answer.
    fn after(
        &self,
        verdict: Verdict,
        asked: Arc<inject::Request>,
        mut response: Response<Body>,
    ) -> Result<Response<Body>, Failure> {
        if let Some((effect, after)) = &verdict.effect {
            if *after {
                strike(effect, &asked)?;
            }
            if *effect == Effect::Garble {
                let body = std::mem::replace(response.body_mut(), Body::empty());
                *response.body_mut() = body.first_half();
            }
        }
        if asked.asked().verb == "watch" && response.status().is_success() {
            let body = std::mem::replace(response.body_mut(), Body::empty());
            *response.body_mut() = inject::guard(
                self.shared.faults.clone(),
                asked,
                (verdict.watch, verdict.seen),
                body,
                self.stopping.clone(),
            );
        }
        Ok(response)
    }
}

/// Does what a rule wants instead of an answer.
fn strike(effect: &Effect, asked: &inject::Request) -> Result<(), Failure> {
    match effect {
        Effect::Drop => Err(Failure::Dropped),
        effect => match inject::answer::fault(effect, &asked.asked()) {
            Some(fault) => Err(fault.into()),
            None => Ok(()),
        },
    }
}

/// Handles a request within its time; streams have all the time they want.
async fn in_time(call: Call, route: Result<Route, BadPath>, body: RequestBody) -> reply::Reply {
    let route = route.map_err(|problem| match problem {
        BadPath::Unknown => Fault::unknown_path(),
        BadPath::Escape => Fault::bad_request("the path has a percent sign that begins no escape"),
        BadPath::Name(name) => Fault::bad_request(format!(
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
    let _room = input::room(&body)?;
    let time = params::timeout(&call.query)?;
    match timeout(time, handlers::dispatch(call, route, body)).await {
        Ok(reply) => reply,
        Err(_) => Err(Fault::timeout()),
    }
}

fn is_stream(call: &Call, resource: &Resource) -> bool {
    let of_collection = resource.name.is_none() && call.query.flag("watch") == Some(true);
    resource.watch || of_collection || resource.subresource.as_deref() == Some("log")
}
