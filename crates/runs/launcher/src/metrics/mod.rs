//! The metrics of a run's tasks: the last values in their metrics files and logs. The files are
//! outputs, which the embedded cluster keeps, and tasks of other clusters upload.

mod files;
mod logs;
mod tasks;

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use longshore_client::{Cluster, Error};
use longshore_diagnosis::{evidence::JobEvidence, names, names::Task};
use serde_json::{Value, json};

pub use crate::metric_values::{
    LARGEST_METRICS, MOST_NAMES, Metrics, check_metric, json_number, shown,
};
use crate::{run::Run, run_outputs::LocalOutputs};
pub(crate) use files::NOT_KEPT;
pub(crate) use tasks::MetricTask;

/// The sources of metrics.
#[derive(Debug, Clone, Copy, Default)]
pub struct MetricSources<'a> {
    /// True to read metrics from the logs of tasks, if the run names metrics.
    pub logs: bool,
    /// The outputs of the cluster, if it keeps any. They contain the metrics files of tasks.
    /// Otherwise, these are read from the store of the run, if it has one.
    pub outputs: Option<&'a LocalOutputs>,
}

/// The metrics of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskMetrics {
    /// The task.
    pub task: Task,
    /// The last values.
    pub values: Metrics,
}

/// The metrics of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunMetrics {
    /// The tasks that have metrics, by role and index.
    pub tasks: Vec<TaskMetrics>,
    /// The sources that could not be read, with the reasons.
    pub unread: Vec<String>,
}

impl RunMetrics {
    /// The names of all metrics, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let names = self.tasks.iter().flat_map(|task| task.values.iter());
        let mut names: Vec<&str> = names.map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The JSON of `longshore metrics --output json`.
    #[must_use]
    pub fn to_json(&self, run: &Run) -> Value {
        let tasks = self.tasks.iter().map(|task| {
            json!({
                "task": task.task.to_string(),
                "role": task.task.role,
                "index": task.task.index,
                "metrics": task.values.to_json(),
            })
        });
        json!({
            "run": run.name.as_str(),
            "namespace": run.namespace,
            "tasks": tasks.collect::<Vec<_>>(),
            "unread": self.unread,
        })
    }
}

/// Reads the last values of the metrics of a run's tasks, as written by the last attempt of each
/// task. Sources that cannot be read are listed in [`RunMetrics::unread`].
///
/// # Errors
/// The run's Jobs or pods cannot be listed.
pub fn of_run<'a>(
    cluster: &'a Cluster,
    run: &'a Run,
    sources: MetricSources<'a>,
) -> BoxFuture<'a, Result<RunMetrics, Error>> {
    // Boxed, so that this crate compiles the future, not each crate that awaits it.
    Box::pin(query(cluster, run, sources))
}

async fn query(
    cluster: &Cluster,
    run: &Run,
    sources: MetricSources<'_>,
) -> Result<RunMetrics, Error> {
    let (jobs, pods) = run.list_jobs_and_pods(cluster).await?;
    let mut names: Vec<String> = Vec::new();
    for name in jobs.iter().flat_map(log_names) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let tasks = tasks::last_attempts(&pods)?;
    let (mut found, mut unread) = read(cluster, run, &names, &tasks, sources).await;
    if sources.logs {
        unread.extend(read_deleted(cluster, run, (&jobs, &tasks), &names, &mut found).await?);
    }
    let tasks = found
        .into_iter()
        .map(|(task, values)| TaskMetrics { task, values });
    Ok(RunMetrics {
        tasks: tasks.filter(|task| !task.values.is_empty()).collect(),
        unread,
    })
}

/// Reads the metrics of the other tasks of an ended run from the logs of their deleted pods, if the
/// cluster keeps them. `tasks` have pods. Returns the problems.
pub(crate) async fn read_deleted(
    cluster: &Cluster,
    run: &Run,
    (jobs, tasks): (&[JobEvidence], &[MetricTask]),
    names: &[String],
    found: &mut BTreeMap<Task, Metrics>,
) -> Result<Vec<String>, Error> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let deleted = tasks::deleted(cluster, run, jobs, tasks).await?;
    let mut of_deleted = BTreeMap::new();
    let unread = logs::read(cluster, &run.namespace, &deleted, names, &mut of_deleted).await;
    for (task, values) in of_deleted {
        // The values of the metrics file are more precise.
        found.entry(task).or_insert(values);
    }
    Ok(unread)
}

/// Reads the metrics of tasks from their logs and files. Also returns the problems.
pub(crate) async fn read(
    cluster: &Cluster,
    run: &Run,
    names: &[String],
    tasks: &[MetricTask],
    sources: MetricSources<'_>,
) -> (BTreeMap<Task, Metrics>, Vec<String>) {
    let (mut found, mut unread) = (BTreeMap::new(), Vec::new());
    if sources.logs && !names.is_empty() {
        unread.extend(logs::read(cluster, &run.namespace, tasks, names, &mut found).await);
    }
    // The file is more precise than the log, so its values take precedence.
    unread.extend(match sources.outputs {
        Some(outputs) => files::read(outputs, run, tasks, &mut found).await,
        None => files::read_stored(cluster, run, names, &mut found).await,
    });
    (found, unread)
}

/// The names of the metrics that a Job's run reads from log lines. Any client can write the
/// annotation, so invalid names are ignored.
pub(crate) fn log_names(job: &JobEvidence) -> Vec<String> {
    let text = job.metadata.annotations.get(names::METRICS);
    let names = text.and_then(|text| serde_json::from_str::<Vec<String>>(text).ok());
    let names = names.unwrap_or_default().into_iter();
    let names = names.filter(|name| check_metric(name).is_ok());
    names.take(MOST_NAMES).collect()
}

/// Reads the text of a task's metrics file.
fn read_text(found: &mut BTreeMap<Task, Metrics>, task: Task, text: &[u8]) {
    let metrics = found.entry(task).or_default();
    metrics.read_json_lines(&String::from_utf8_lossy(text));
}
