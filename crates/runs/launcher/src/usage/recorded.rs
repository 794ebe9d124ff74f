//! The records of running tasks, which the bootstrap's program prints in their containers.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use longshore_client::Cluster;
use longshore_diagnosis::usage::{self, UsageRecord};

use super::{Detail, RunUsage, TaskUsage};
use crate::run::Run;

/// The maximum number of tasks whose records are read, because each needs a connection.
const MOST_TASKS: usize = 32;
/// The number of records that are read at the same time.
const READERS: usize = 8;
/// The timeout of reading a record.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Adds the records of running tasks for which the current usage is not sufficient.
pub(super) async fn read(cluster: &Cluster, run: &Run, detail: Detail, usage: &mut RunUsage) {
    let is_wanted = |task: &TaskUsage| {
        task.is_running
            && task.program.is_some()
            && (detail == Detail::Series || task.current.is_none() || task.has_accelerators)
    };
    let wanted: Vec<(usize, TaskUsage)> = usage
        .tasks
        .iter()
        .enumerate()
        .filter(|(_, task)| is_wanted(task))
        .map(|(place, task)| (place, task.clone()))
        .collect();
    if wanted.len() > MOST_TASKS {
        usage.unseen.push(format!(
            "the records of {} running tasks: at most {MOST_TASKS} are read",
            wanted.len() - MOST_TASKS
        ));
    }
    let reading = stream::iter(wanted.into_iter().take(MOST_TASKS))
        .map(|(place, task)| async move { (place, record(cluster, run, &task).await) });
    let mut reading = std::pin::pin!(reading.buffer_unordered(READERS));
    let mut problem = None;
    while let Some((place, found)) = reading.next().await {
        match (found, usage.tasks.get_mut(place)) {
            (Ok(record), Some(task)) => task.record = record,
            (Err(text), _) => problem = Some(text),
            (Ok(_), None) => {}
        }
    }
    usage.unseen.extend(problem);
}

async fn record(
    cluster: &Cluster,
    run: &Run,
    task: &TaskUsage,
) -> Result<Option<UsageRecord>, String> {
    let program = task.program.as_deref().unwrap_or_default();
    let problem = |text: String| format!("the record of {}: {text}", task.task);
    let pods = cluster.pods().in_namespace(&run.namespace);
    let pods = pods.map_err(|error| problem(error.to_string()))?;
    let command = [program, "bootstrap", "usage"];
    let output = pods.output(&task.pod, command, Some(&task.container));
    let output = match tokio::time::timeout(TIMEOUT, output).await {
        Ok(Ok(output)) => output,
        // The task has ended in the meantime.
        Ok(Err(error)) if error.is_not_found() => return Ok(None),
        Ok(Err(error)) => return Err(problem(error.to_string())),
        Err(_) => return Err(problem(format!("no answer within {} s", TIMEOUT.as_secs()))),
    };
    Ok(usage::split(&String::from_utf8_lossy(&output.stdout)).0)
}
