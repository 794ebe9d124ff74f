//! Server-sent events.

use std::{sync::Arc, time::Duration, time::Instant};

use futures::{StreamExt as _, stream};
use http::Response;
use jiff::Timestamp;
use longshore_launcher::RunSummary;
use maud::Markup;

use super::queries;
use crate::{
    access::Session,
    app::App,
    body::{Body, streamed},
    live::{Parts, Snapshot, part_events, repeated_events},
    logs::log_events,
    pages::{self, PagePart},
    route::{RunKey, Shown},
};

const EVENTS: &str = "text/event-stream";
/// The interval at which the timeline of a run is rendered, because its last bars grow.
const TIMELINE_INTERVAL: Duration = Duration::from_secs(2);

fn part(id: &'static str, html: Markup) -> PagePart {
    PagePart {
        id,
        html: html.into_string(),
    }
}

fn status(snapshot: &Snapshot) -> PagePart {
    part("status", pages::reachability(&snapshot.reachability))
}

/// The changes of the list of runs.
pub(super) fn runs(app: &Arc<App>, session: &Session) -> Response<Body> {
    let (shared, session) = (Arc::clone(app), session.clone());
    let render = move |snapshot: &Snapshot, _: bool| {
        let mut parts = vec![status(snapshot)];
        if snapshot.is_loaded {
            let frame = shared.frame(&session);
            // Times advance in the page, so that rows change only if their run does.
            let table = pages::runs_table(frame, &snapshot.runs, Timestamp::UNIX_EPOCH);
            parts.push(part("runs", table));
        }
        Parts::Page(parts)
    };
    streamed(EVENTS, part_events(app.feed.clone(), None, render))
}

/// The changes of a run, and of a part that is read repeatedly.
pub(super) fn run(
    app: &Arc<App>,
    session: &Session,
    key: RunKey,
    shown: Option<Shown>,
) -> Response<Body> {
    let repeated = shown.map(|shown| {
        let shared = Arc::clone(app);
        repeated_events(app.feed.clone(), key.clone(), move |run| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let html = match shown {
                    Shown::Usage => queries::usage(&shared, &run).await,
                    Shown::Sweep => queries::sweep(&shared, &run).await,
                };
                part(shown.as_str(), html)
            })
        })
    });
    let (shared, session) = (Arc::clone(app), session.clone());
    let render = move |snapshot: &Snapshot, is_tick: bool| {
        let Some(run) = snapshot.run(&key) else {
            return Parts::Gone(status(snapshot));
        };
        let head = part("head", pages::head(run, Timestamp::UNIX_EPOCH));
        if run.schedule.is_some() {
            let (frame, runs) = (shared.frame(&session), snapshot.runs_of(run));
            let table = pages::runs_table(frame, &runs, Timestamp::UNIX_EPOCH);
            return Parts::Page(vec![status(snapshot), head, part("runs", table)]);
        }
        if is_tick && run.state.is_over() {
            return Parts::Page(Vec::new());
        }
        let tasks = snapshot.tasks(run);
        Parts::Page(vec![
            status(snapshot),
            head,
            part("tasks", pages::grid(&tasks)),
            part("timeline", pages::timeline(&tasks, run, Timestamp::now())),
        ])
    };
    let events = part_events(app.feed.clone(), Some(TIMELINE_INTERVAL), render);
    match repeated {
        Some(repeated) => streamed(EVENTS, stream::select(events.boxed(), repeated.boxed())),
        None => streamed(EVENTS, events),
    }
}

/// The lines of a run.
pub(super) fn logs(
    app: &App,
    key: &RunKey,
    run: &RunSummary,
    after: Option<&str>,
) -> Response<Body> {
    let feed = app.logs.of(key, &run.run, Instant::now());
    streamed(EVENTS, log_events(feed, after))
}
