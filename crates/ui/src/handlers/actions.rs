//! Cancels and removes runs.

use http::{Response, StatusCode};
use jiff::Timestamp;
use longshore_launcher::{RunSummary, runs};

use crate::{
    app::App,
    body::{Body, text},
};

fn done(result: Result<(), String>) -> Response<Body> {
    match result {
        Ok(()) => text(StatusCode::OK, ""),
        Err(error) => text(StatusCode::BAD_GATEWAY, error),
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
