//! The usage of runs, and their tags, notes and differences.

use longshore::{
    Cluster as Connection, Error,
    launcher::{
        Run as Inner,
        compare::{self, Comparison},
        metrics::MetricSources,
        run_outputs::LocalOutputs,
        runs::{self, RunSummary},
        tag::{TagChange, check_note, check_tag},
        usage::{self, Detail, TaskUsage},
    },
};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::{Failure, one};

/// An error about an argument.
pub(crate) fn invalid(py: Python<'_>, text: &str) -> PyErr {
    match one(py, "InvalidError", text) {
        Ok(error) | Err(error) => error,
    }
}

/// Checks tags before anything is sent.
pub(crate) fn check_tags(py: Python<'_>, changes: &[TagChange]) -> PyResult<()> {
    for (key, value) in changes {
        let check = check_tag(key, value.as_deref().unwrap_or_default());
        check.map_err(|rule| invalid(py, &format!("invalid tag {key:?}: {rule}")))?;
    }
    Ok(())
}

/// Checks a note before anything is sent.
pub(crate) fn check_text(py: Python<'_>, note: Option<&str>) -> PyResult<()> {
    let check = check_note(note.unwrap_or_default());
    check.map_err(|rule| invalid(py, &format!("invalid note: {rule}")))
}

async fn find(cluster: &Connection, run: &Inner) -> Result<RunSummary, Failure> {
    Ok(runs::find(cluster, &run.namespace, run.name.as_str()).await?)
}

/// The current summary of a run.
pub(crate) async fn summary(cluster: Connection, run: Inner) -> Result<Value, Failure> {
    Ok(find(&cluster, &run).await?.to_json())
}

/// The usage of a run's tasks, as `longshore top --output json` prints it.
pub(crate) async fn used(cluster: Connection, run: Inner, series: bool) -> Result<Value, Error> {
    let detail = match series {
        true => Detail::Series,
        false => Detail::Current,
    };
    let usage = usage::of_run(&cluster, &run, detail).await?;
    let tasks: Vec<Value> = usage.tasks.iter().map(TaskUsage::to_json).collect();
    Ok(json!({"tasks": tasks, "unseen": usage.unseen}))
}

/// The differences between two runs.
pub(crate) async fn compared(
    cluster: Connection,
    kept: Option<LocalOutputs>,
    one: Inner,
    other: Inner,
) -> Result<Comparison, Failure> {
    let (one, other) = (find(&cluster, &one).await?, find(&cluster, &other).await?);
    let sources = MetricSources {
        logs: true,
        outputs: kept.as_ref(),
    };
    Ok(compare::compare(&cluster, &one, &other, sources).await?)
}
