//! Parts of a page that are read on request.

use http::{Response, StatusCode};
use jiff::Timestamp;
use longshore_launcher::{
    RunSummary, run_outputs::TaskChoice, runs::objects as run_objects, why::why as explain,
};

use crate::{
    app::App,
    body::{Body, html, text},
    pages,
    route::run_path,
};

/// A part that says why something cannot be shown.
pub(super) fn problem(message: &str) -> Response<Body> {
    html(StatusCode::OK, pages::problem(message))
}

/// The path of a run's page.
fn path(app: &App, run: &RunSummary) -> String {
    let path = run_path(&run.run.namespace, run.run.name.as_str());
    format!("/{}/{path}", app.base)
}

pub(super) async fn why(app: &App, run: &RunSummary) -> Response<Body> {
    if run.schedule.is_some() {
        return html(StatusCode::OK, maud::html! {});
    }
    let _permit = app.queries.acquire().await;
    match explain(&app.cluster, &run.run).await {
        Ok(mut why) => {
            if let (Some(complete), Some(known)) = (app.complete, &mut why.explanation) {
                complete(known);
            }
            html(StatusCode::OK, pages::why(&why))
        }
        Err(error) => problem(&error.to_string()),
    }
}

pub(super) async fn outputs(app: &App, run: &RunSummary) -> Response<Body> {
    let Some(local) = &app.outputs else {
        return problem(
            "This page shows only outputs that the embedded cluster keeps. `longshore outputs` fetches those of other clusters.",
        );
    };
    let _permit = app.queries.acquire().await;
    let everything = TaskChoice::default();
    let found = local.of_run(&app.cluster, &run.run, &everything, Timestamp::now());
    match found.await {
        Ok(tasks) => html(StatusCode::OK, pages::outputs(&path(app, run), &tasks)),
        Err(error) => problem(&error.to_string()),
    }
}

pub(super) async fn objects(app: &App, run: &RunSummary) -> Response<Body> {
    let _permit = app.queries.acquire().await;
    match run_objects::objects(&app.cluster, &run.run).await {
        Ok(found) => html(StatusCode::OK, pages::objects(&path(app, run), &found)),
        Err(error) => problem(&error.to_string()),
    }
}

pub(super) async fn object(app: &App, run: &RunSummary, kind: &str, name: &str) -> Response<Body> {
    let _permit = app.queries.acquire().await;
    match run_objects::object(&app.cluster, &run.run, kind, name).await {
        Ok(Some(value)) => text(StatusCode::OK, pages::object(value)),
        Ok(None) => text(StatusCode::NOT_FOUND, "The object does not exist."),
        Err(error) => text(StatusCode::BAD_GATEWAY, error.to_string()),
    }
}
