//! The metrics files of tasks. On the embedded cluster, the files of ended tasks are read from the
//! kept outputs, and the files of running tasks from the folders of their pods. On other clusters,
//! both are read from the store to which tasks upload them.

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};
use longshore_client::Cluster;
use longshore_diagnosis::{names, names::Task};

use super::{LARGEST_METRICS, MetricTask, Metrics, read_text};
use crate::{
    outputs::{OutputsError, tail_of_running},
    run::Run,
    run_outputs::{LocalOutputs, OutputsPlace, RunOutputsError, StoredOutputs, StoredTask, places},
};

/// The number of files to read at the same time.
const PARALLEL: usize = 16;

/// The message for a run without a store, of which no metrics are read from logs.
pub(crate) const NOT_KEPT: &str = "the metrics files: no store keeps those of this run; set `store` in longshore.toml, or name the metrics in the logs with --metric";

/// Reads the metrics files of all tasks from the store of the run, if it has one. Returns the
/// problems. `in_logs` contains the metrics that are read from logs.
pub(super) async fn read_stored(
    cluster: &Cluster,
    run: &Run,
    in_logs: &[String],
    found: &mut BTreeMap<Task, Metrics>,
) -> Vec<String> {
    match stored(cluster, run, found).await {
        Ok(None) if in_logs.is_empty() => vec![NOT_KEPT.to_owned()],
        Ok(None) => Vec::new(),
        Ok(Some(problems)) => problems,
        Err(error) => vec![format!("the metrics files: {error}")],
    }
}

/// Reads the metrics files from the store of the run. Returns `None` if the run has no store.
async fn stored(
    cluster: &Cluster,
    run: &Run,
    found: &mut BTreeMap<Task, Metrics>,
) -> Result<Option<Vec<String>>, RunOutputsError> {
    let mut problems = Vec::new();
    let places = places(cluster, run).await?;
    if places.is_empty() {
        return Ok(None);
    }
    for place in places {
        let store = match place {
            OutputsPlace::Store(store) => store,
            OutputsPlace::Claim(claim) => {
                let text = "the metrics files in the claim {}: fetch them with `longshore outputs`";
                problems.push(text.replace("{}", &claim));
                continue;
            }
        };
        let outputs = StoredOutputs::new(&store, run, &[])?;
        let roles = run.roles.iter();
        let tasks = roles.flat_map(|role| (0..role.count).map(|index| (role.name.clone(), index)));
        let (tasks, damaged) = outputs.of_tasks(tasks.collect()).await?;
        problems.extend(damaged.iter().map(ToString::to_string));
        let read = |task: StoredTask| {
            let outputs = &outputs;
            async move {
                let text = outputs
                    .tail(&task, names::METRICS_FILE, LARGEST_METRICS)
                    .await;
                (task, text)
            }
        };
        let texts = stream::iter(tasks).map(read).buffered(PARALLEL);
        for (task, text) in texts.collect::<Vec<_>>().await {
            let manifest = task.manifest();
            match text {
                Ok(Some(text)) => {
                    let task = Task {
                        role: manifest.role.clone(),
                        index: manifest.index,
                    };
                    read_text(found, task, &text);
                }
                Ok(None) => {}
                Err(error) => {
                    problems.push(format!("the metrics file of {}: {error}", manifest.task()))
                }
            }
        }
    }
    Ok(Some(problems))
}

/// Reads the metrics files of all tasks. Returns the problems.
pub(super) async fn read(
    local: &LocalOutputs,
    run: &Run,
    tasks: &[MetricTask],
    found: &mut BTreeMap<Task, Metrics>,
) -> Vec<String> {
    let (namespace, run) = (run.namespace.clone(), run.name.to_string());
    let local = local.clone();
    let running = tasks.iter().filter_map(|task| {
        let uid = task.running.clone()?;
        Some((task.task.clone(), uid))
    });
    let running: Vec<(Task, String)> = running.collect();
    let reading = tokio::task::spawn_blocking(move || {
        let mut texts: Vec<(Task, Vec<u8>)> = Vec::new();
        let mut problems = Vec::new();
        let (manifests, damaged) = local.outputs.of_tasks(&namespace, &run)?;
        problems.extend(damaged.iter().map(ToString::to_string));
        for manifest in manifests {
            let task = Task {
                role: manifest.role.clone(),
                index: manifest.index,
            };
            let mut files = manifest.files.iter();
            let file = files.find(|file| file.path == names::METRICS_FILE);
            match file.map(|file| local.outputs.tail(file, LARGEST_METRICS)) {
                Some(Ok(text)) => texts.push((task, text)),
                Some(Err(error)) => {
                    problems.push(format!("the metrics file of {}: {error}", manifest.task()))
                }
                None => {}
            }
        }
        for (task, uid) in running {
            // The task may have just ended, and its folder may be gone.
            let text = local
                .volume(&uid)
                .map(|volume| tail_of_running(&volume, names::METRICS_FILE, LARGEST_METRICS));
            if let Some(Ok(Some(text))) = text {
                texts.push((task, text));
            }
        }
        Ok::<_, OutputsError>((texts, problems))
    });
    let (texts, problems) = match reading.await {
        Ok(Ok(read)) => read,
        Ok(Err(error)) => return vec![format!("the metrics files: {error}")],
        Err(error) => return vec![format!("the metrics files: {error}")],
    };
    for (task, text) in texts {
        read_text(found, task, &text);
    }
    problems
}
