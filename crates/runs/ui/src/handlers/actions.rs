//! Cancels and removes runs, and runs the failed combinations of sweeps again.

use std::time::Duration;

use http::{Response, StatusCode};
use jiff::Timestamp;
use longshore_launcher::{
    Purpose, RunSummary, names, preflight,
    runs::{self, RunsError},
    submit, sweeps,
};

use crate::{
    app::App,
    body::{Body, text},
    route::{RunKey, run_path},
};

/// The maximum time to wait until a new run appears in the list of runs.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

fn done(result: Result<(), String>) -> Response<Body> {
    match result {
        Ok(()) => text(StatusCode::OK, ""),
        Err(error) => text(StatusCode::BAD_GATEWAY, error),
    }
}

/// The refusal to change a run of another user without a confirmation.
pub(super) async fn refusal(app: &App, run: &RunSummary) -> Option<Response<Body>> {
    let checked = runs::check_own(&app.cluster, &run.run, run.owner.as_ref()).await;
    match checked {
        Ok(()) => None,
        Err(error @ RunsError::NotOwn { .. }) => {
            let message = format!("{error}.");
            Some(text(StatusCode::PRECONDITION_FAILED, message))
        }
        Err(error) => Some(text(StatusCode::BAD_GATEWAY, error.to_string())),
    }
}

/// Stops a run and keeps its record.
pub(super) async fn cancel(app: &App, run: &RunSummary) -> Response<Body> {
    if run.state.is_over() {
        return text(StatusCode::CONFLICT, "The run has already finished.");
    }
    let cancelled = runs::cancel(&app.cluster, &run.run, Timestamp::now()).await;
    done(cancelled.map(drop).map_err(|error| error.to_string()))
}

/// Removes a run with its objects and files.
pub(super) async fn remove(app: &App, all: &[RunSummary], run: &RunSummary) -> Response<Body> {
    done(app.removal.remove(all, run).await)
}

/// Runs the failed combinations of a sweep again. Responds with the path of the new run's page.
pub(super) async fn retry(app: &App, run: &RunSummary) -> Response<Body> {
    if run.sweep.is_none() || run.schedule.is_some() {
        return text(StatusCode::CONFLICT, "The run is not a sweep.");
    }
    match start(app, run).await {
        Ok(path) => text(StatusCode::OK, path),
        Err(error) => text(StatusCode::BAD_GATEWAY, error),
    }
}

/// Submits the new run, with the checks of `longshore retry`.
async fn start(app: &App, run: &RunSummary) -> Result<String, String> {
    // Two at the same time would both run the same combinations.
    let _permit = app.retries.acquire().await;
    let cluster = &app.cluster;
    let suffix = names::random_suffix();
    let plan = sweeps::retry(cluster, &run.run, &suffix).await;
    let plan = plan.map_err(|error| error.to_string())?;
    let report = preflight::check(cluster, &plan, Purpose::Detach).await;
    let report = report.map_err(|error| error.to_string())?;
    if !report.refusals.is_empty() {
        let problems = report.refusals.iter().map(ToString::to_string);
        return Err(problems.collect::<Vec<_>>().join("\n"));
    }
    let started = submit::submit(cluster, &plan).await;
    let started = started.map_err(|error| error.to_string())?;
    // The browser opens the page of the new run next.
    let key = RunKey {
        namespace: started.namespace.clone(),
        name: started.name.to_string(),
    };
    app.feed.clone().listed(&key, LIST_TIMEOUT).await;
    let path = run_path(&started.namespace, started.name.as_str());
    Ok(format!("/{}/{path}", app.base))
}
