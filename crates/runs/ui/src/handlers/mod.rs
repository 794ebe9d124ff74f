//! Answers requests.

mod actions;
mod browse;
mod file;
mod queries;
mod streams;

use std::{sync::Arc, time::Duration, time::Instant};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use jiff::Timestamp;
use longshore_launcher::RunSummary;

use crate::{
    access::{self, Refusal, Session},
    app::App,
    assets,
    body::{Body, html, secured, text, whole},
    live::Snapshot,
    pages,
    route::{self, Change, Inside, Part, Route, RunKey},
};

/// The maximum time that the first page waits for the list of runs.
const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers a request. The bodies of requests are not read, because no route needs one.
pub(crate) async fn respond(app: &Arc<App>, request: &Request<Incoming>) -> Response<Body> {
    let response = answer(app, request.method(), request.uri(), request.headers()).await;
    secured(response.unwrap_or_else(refuse))
}

fn refuse(refusal: Refusal) -> Response<Body> {
    html(refusal.status(), pages::refused(refusal))
}

async fn answer(
    app: &Arc<App>,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response<Body>, Refusal> {
    access::check_target(method, headers, app.address)?;
    let inside = match route::parse(uri, &app.base) {
        Route::Open { token } if method == Method::GET => return open(app, &token),
        Route::Open { .. } => return Err(Refusal::Method),
        Route::Unknown => return Err(Refusal::NoSession),
        Route::Inside(inside) => inside,
    };
    let session = access::check(
        method,
        headers,
        app.address,
        &app.sessions(),
        Instant::now(),
    )?;
    let is_change = matches!(&inside, Inside::Run(_, part) if part.is_change());
    if is_change != (method == Method::POST) {
        return Err(Refusal::Method);
    }
    Ok(match inside {
        Inside::Runs => runs(app, &session).await,
        Inside::RunsEvents => streams::runs(app, &session),
        Inside::Asset(name) => asset(&name),
        Inside::Objects { kind, namespace } => {
            browse::list(app, &session, kind.as_deref(), namespace.as_deref()).await
        }
        Inside::Object {
            kind,
            namespace,
            name,
        } => browse::object(app, &session, (&kind, &namespace, &name)).await,
        Inside::Run(key, part) => run(app, &session, headers, &key, part).await,
        Inside::Unknown => not_found("There is no such page."),
    })
}

/// Exchanges the token of a link for a session.
fn open(app: &App, token: &str) -> Result<Response<Body>, Refusal> {
    let id = app.sessions().exchange(token, Instant::now());
    let id = id.ok_or(Refusal::Link)?;
    let mut response = html(StatusCode::OK, pages::opened(&app.base));
    let cookie = access::set_cookie(&id, &app.base);
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

async fn runs(app: &App, session: &Session) -> Response<Body> {
    let snapshot = app.feed.clone().loaded(FIRST_LIST_TIMEOUT).await;
    let status = pages::reachability(&snapshot.reachability);
    let page = pages::runs_page(
        app.frame(session),
        &status,
        &snapshot.runs,
        Timestamp::now(),
    );
    html(StatusCode::OK, page)
}

fn asset(name: &str) -> Response<Body> {
    match assets::find(name) {
        Some((content, content_type)) => whole(StatusCode::OK, content_type, content),
        None => not_found("There is no such file."),
    }
}

async fn run(
    app: &Arc<App>,
    session: &Session,
    headers: &HeaderMap,
    key: &RunKey,
    part: Part,
) -> Response<Body> {
    let snapshot = app.feed.clone().loaded(FIRST_LIST_TIMEOUT).await;
    let Some(found) = snapshot.run(key) else {
        return missing(app, session, &snapshot, key, &part);
    };
    match part {
        Part::Page => page(app, session, &snapshot, found),
        Part::Events { shown } => streams::run(app, session, key.clone(), shown),
        Part::Logs { after } => {
            // Browsers that reconnect send the ID of the last event as a header.
            let last = headers.get("last-event-id");
            let last = last.and_then(|id| id.to_str().ok());
            streams::logs(app, key, found, last.or(after.as_deref()))
        }
        Part::Why => queries::why(app, found).await,
        Part::Metrics => queries::metrics(app, found).await,
        Part::Outputs => queries::outputs(app, found).await,
        Part::File { task, path } => file::download(app, found, &task, &path).await,
        Part::Objects => queries::objects(app, found).await,
        Part::Object { kind, name } => queries::object(app, found, &kind, &name).await,
        Part::Change { change, all_users } => {
            if !all_users && let Some(refusal) = actions::refusal(app, found).await {
                return refusal;
            }
            match change {
                Change::Cancel => actions::cancel(app, found).await,
                Change::Retry => actions::retry(app, found).await,
                Change::Remove => actions::remove(app, &snapshot.runs, found).await,
            }
        }
    }
}

fn page(app: &App, session: &Session, snapshot: &Snapshot, run: &RunSummary) -> Response<Body> {
    let status = pages::reachability(&snapshot.reachability);
    let (frame, now) = (app.frame(session), Timestamp::now());
    let page = match run.schedule {
        Some(_) => pages::schedule_page(frame, &status, run, &snapshot.runs_of(run), now),
        None => pages::run_page(frame, &status, run, &snapshot.tasks(run), now),
    };
    html(StatusCode::OK, page)
}

fn missing(
    app: &App,
    session: &Session,
    snapshot: &Snapshot,
    key: &RunKey,
    part: &Part,
) -> Response<Body> {
    let (frame, status) = (
        app.frame(session),
        pages::reachability(&snapshot.reachability),
    );
    match (part, snapshot.is_loaded) {
        (Part::Page, true) => {
            let page = pages::gone(frame, &status, &key.name);
            html(StatusCode::NOT_FOUND, page)
        }
        (Part::Page, false) => {
            let page = pages::unknown(frame, &status, &key.name);
            html(StatusCode::SERVICE_UNAVAILABLE, page)
        }
        (_, true) => not_found("The run does not exist, or was removed."),
        (_, false) => text(
            StatusCode::SERVICE_UNAVAILABLE,
            "The cluster has not listed its runs yet.",
        ),
    }
}

fn not_found(message: &'static str) -> Response<Body> {
    text(StatusCode::NOT_FOUND, message)
}
