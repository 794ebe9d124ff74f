//! Metrics in the logs of tasks.

use std::collections::BTreeMap;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use longshore_client::{Cluster, Error, LogOptions};
use longshore_diagnosis::names::Task;

use super::{LARGEST_METRICS, MetricTask, Metrics};

/// The number of lines to read from the end of a log.
const LINES: u64 = 1_000;
/// The number of logs that are read at the same time.
const READERS: usize = 16;

/// Reads the metrics from the end of each task's log. Returns the problems.
pub(super) async fn read(
    cluster: &Cluster,
    namespace: &str,
    tasks: &[MetricTask],
    names: &[String],
    found: &mut BTreeMap<Task, Metrics>,
) -> Vec<String> {
    let started = tasks.iter().filter(|task| task.has_started).cloned();
    let started: Vec<MetricTask> = started.collect();
    let reading = stream::iter(started).map(|task| async move {
        let text = tail(cluster, namespace, &task).await;
        (task, text)
    });
    let mut reading = std::pin::pin!(reading.buffer_unordered(READERS));
    let mut problems = Vec::new();
    while let Some((task, text)) = reading.next().await {
        match text {
            Ok(text) => {
                let metrics = found.entry(task.task.clone()).or_default();
                metrics.read_log(names, &String::from_utf8_lossy(&text));
            }
            // The pod was deleted together with its log.
            Err(error) if error.is_not_found() => {}
            Err(error) => problems.push(format!("the log of the pod {}: {error}", task.pod)),
        }
    }
    problems
}

async fn tail(cluster: &Cluster, namespace: &str, task: &MetricTask) -> Result<Vec<u8>, Error> {
    let options = LogOptions {
        container: Some(task.container.clone()),
        uid: task.uid.clone(),
        tail_lines: Some(LINES),
        ..LogOptions::default()
    };
    let pods = cluster.pods().in_namespace(namespace)?;
    let mut log = std::pin::pin!(pods.logs(&task.pod, &options).await?);
    let limit = usize::try_from(LARGEST_METRICS).unwrap_or(usize::MAX);
    let mut text = Vec::new();
    while let Some(chunk) = log.try_next().await? {
        text.extend_from_slice(&chunk);
        // Only the end counts, and a line may be long.
        if text.len() > limit.saturating_mul(2) {
            text.drain(..text.len().saturating_sub(limit));
        }
    }
    text.drain(..text.len().saturating_sub(limit));
    Ok(text)
}
