//! Parts of a page that are read on request.

use http::{Response, StatusCode};
use jiff::Timestamp;
use longshore_launcher::{
    RunSummary,
    metrics::{self, MetricSources},
    outputs::{Manifest, OutputsError},
    run_outputs::{OutputsPlace, RunFiles, TaskChoice, places},
    runs::objects as run_objects,
    sweeps,
    usage::{self, Detail},
    why::why as explain,
};
use maud::Markup;

use crate::{
    app::App,
    body::{Body, html, text},
    pages,
    route::run_path,
};

/// A part that shows an error.
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
    let _permit = app.queries.acquire().await;
    let everything = TaskChoice::default();
    let found = match &app.outputs {
        Some(local) => {
            let unreadable = async |_: String| Err(OutputsError::NotKept);
            let (local, now) = (Some(local.clone()), Timestamp::now());
            let found = RunFiles::find(local, &app.cluster, &run.run, &everything, now, unreadable);
            found.await.map_err(|error| error.to_string())
        }
        None => stored(app, run, &everything).await,
    };
    match found {
        Ok(files) => {
            let tasks: Vec<Manifest> = files.manifests().cloned().collect();
            let page = pages::outputs(&path(app, run), &tasks, &files.problems());
            html(StatusCode::OK, page)
        }
        Err(error) => problem(&error),
    }
}

/// The outputs of a run in a store. The error is a message for the user.
pub(super) async fn stored(
    app: &App,
    run: &RunSummary,
    choice: &TaskChoice,
) -> Result<RunFiles, String> {
    let (cluster, name) = (&app.cluster, run.run.name.as_str());
    let places = places(cluster, &run.run).await;
    let places = places.map_err(|error| error.to_string())?;
    if let Some(OutputsPlace::Claim(claim)) = places.first() {
        return Err(format!(
            "The outputs are in the PersistentVolumeClaim {claim}, which only pods can read: `longshore outputs {name}` creates one for this and fetches them."
        ));
    }
    let now = Timestamp::now();
    // Volume claims cannot be read here.
    let unreadable = async |_: String| Err(OutputsError::NotKept);
    let found = RunFiles::find(None, cluster, &run.run, choice, now, unreadable);
    found.await.map_err(|error| error.to_string())
}

/// The resource usage of a run's tasks.
pub(super) async fn usage(app: &App, run: &RunSummary) -> Markup {
    let _permit = app.queries.acquire().await;
    match usage::of_run(&app.cluster, &run.run, Detail::Series).await {
        Ok(found) => pages::usage(&found),
        Err(error) => pages::problem(&error.to_string()),
    }
}

/// The last values of the metrics of the tasks.
pub(super) async fn metrics(app: &App, run: &RunSummary) -> Response<Body> {
    let _permit = app.queries.acquire().await;
    let sources = MetricSources {
        logs: true,
        outputs: app.outputs.as_ref(),
    };
    match metrics::of_run(&app.cluster, &run.run, sources).await {
        Ok(found) => html(StatusCode::OK, pages::metrics(&found)),
        Err(error) => problem(&error.to_string()),
    }
}

/// The combinations of a sweep.
pub(super) async fn sweep(app: &App, run: &RunSummary) -> Markup {
    let _permit = app.queries.acquire().await;
    let sources = MetricSources {
        logs: true,
        outputs: app.outputs.as_ref(),
    };
    match sweeps::table(&app.cluster, &run.run, sources).await {
        Ok(table) => pages::sweep(&app.base, run, &table, Timestamp::now()),
        Err(error) => pages::problem(&error.to_string()),
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
