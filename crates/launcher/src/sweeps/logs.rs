//! Metrics in the logs of tasks.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use longshore_client::{Cluster, Error, LogOptions};

use super::objects::Found;
use crate::sweep::LARGEST_METRICS;

/// The number of lines to read from the end of a log.
const LINES: u64 = 1_000;
/// The number of logs that are read at the same time.
const READERS: usize = 16;

/// Reads the metrics from the end of each task's log. Returns what could not be read.
pub(super) async fn read(cluster: &Cluster, found: &mut Found, names: &[String]) -> Vec<String> {
    let namespace = &found.run.namespace;
    let tasks = found.rows.tasks.iter().filter(|(_, task)| task.has_started);
    let tasks = tasks.map(|(index, task)| (*index, task.pod.clone(), task.container.clone()));
    let tasks: Vec<(u32, String, String)> = tasks.collect();
    let reading = stream::iter(tasks).map(|(index, pod, container)| async move {
        let text = tail(cluster, namespace, &pod, container).await;
        (index, pod, text)
    });
    let mut reading = std::pin::pin!(reading.buffer_unordered(READERS));
    let mut problems = Vec::new();
    while let Some((index, pod, text)) = reading.next().await {
        match text {
            Ok(text) => {
                let metrics = found.rows.metrics.entry(index).or_default();
                metrics.read_log(names, &String::from_utf8_lossy(&text));
            }
            // The pod was deleted, with its log.
            Err(error) if error.is_not_found() => {}
            Err(error) => problems.push(format!("the log of the pod {pod}: {error}")),
        }
    }
    problems
}

async fn tail(
    cluster: &Cluster,
    namespace: &str,
    pod: &str,
    container: String,
) -> Result<Vec<u8>, Error> {
    let options = LogOptions {
        container: Some(container),
        tail_lines: Some(LINES),
        ..LogOptions::default()
    };
    let pods = cluster.pods().in_namespace(namespace)?;
    let mut log = std::pin::pin!(pods.logs(pod, &options).await?);
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
