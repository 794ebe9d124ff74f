//! The outputs of runs on clusters of this machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
};

use jiff::Timestamp;
use longshore::launcher::{
    Run, names,
    outputs::{FetchOptions, Manifest, Outputs, OutputsError, task_folder},
    run_outputs::{self, LocalOutputs, OutputsPlace, RunFiles, RunOutputsError, TaskChoice},
    runs,
};
use longshore_embedded::{CollectFiles, EndedPod, Layout, daemon};
use pyo3::Python;
use serde::Serialize;
use tokio::runtime::Handle;

use crate::{errors::Failure, wait::wait};

/// The outputs of the cluster in this folder.
pub(crate) fn of(layout: &Layout, ephemeral: bool) -> LocalOutputs {
    LocalOutputs {
        outputs: Outputs::new(layout.outputs()),
        pods: layout.pods(ephemeral),
    }
}

/// The outputs of clusters in this process, by their kubeconfigs.
static IN_PROCESS: Mutex<BTreeMap<PathBuf, LocalOutputs>> = Mutex::new(BTreeMap::new());

/// Remembers the outputs of a cluster in this process.
pub(crate) fn remember(kubeconfig: &Path, outputs: &LocalOutputs) {
    let mut known = IN_PROCESS.lock().unwrap_or_else(|error| error.into_inner());
    known.insert(absolute(kubeconfig), outputs.clone());
}

/// Returns the outputs of this machine's cluster, if the kubeconfig belongs to it.
pub(crate) fn of_kubeconfig(py: Python<'_>, kubeconfig: &Path) -> Option<LocalOutputs> {
    let path = absolute(kubeconfig);
    let known = IN_PROCESS.lock().unwrap_or_else(|error| error.into_inner());
    if let Some(outputs) = known.get(&path) {
        return Some(outputs.clone());
    }
    drop(known);
    let layout = Layout::new(path.parent()?);
    if layout.kubeconfig() != path {
        return None;
    }
    let found = wait(py, daemon::find(&layout)).ok()?;
    let record = found.running()?;
    Some(of(&layout, record.ephemeral))
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Keeps outputs of a cluster in this process, whose folder is known when it has started.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskOutputs(Arc<OnceLock<Outputs>>);

impl TaskOutputs {
    /// Sets the folder, unless it is set.
    pub(crate) fn set(&self, outputs: Outputs) {
        let _ = self.0.set(outputs);
    }
}

impl CollectFiles for TaskOutputs {
    fn wants(&self, annotations: &BTreeMap<String, String>) -> bool {
        annotations.contains_key(names::OUTPUTS)
    }

    fn collect(&self, pod: &EndedPod<'_>) {
        // The folder is set before pods are created or, if it has pods of an earlier cluster,
        // before the start.
        if let Some(outputs) = self.0.get() {
            run_outputs::keep_ended(outputs, pod.metadata, pod.volumes, Timestamp::now());
        }
    }
}

/// The outputs of a task.
#[derive(Debug, Serialize)]
pub(crate) struct TaskFiles {
    task: String,
    /// The folder with its files, if they were fetched.
    folder: Option<PathBuf>,
    manifest: Manifest,
    /// The matching files that are not among the outputs, each in a sentence.
    left_out: Vec<String>,
}

/// The outputs of a run, which are also written to a folder if one is given.
pub(crate) async fn outputs(
    local: Option<LocalOutputs>,
    cluster: longshore::Cluster,
    run: Run,
    to: Option<PathBuf>,
    task: Option<String>,
    force: bool,
) -> Result<Vec<TaskFiles>, RunOutputsError> {
    let choice = match &task {
        None => TaskChoice::default(),
        Some(task) => {
            TaskChoice::parse(task).ok_or_else(|| RunOutputsError::NotATask(task.clone()))?
        }
    };
    let open = async |claim: String| {
        let problem = "use the command `longshore outputs`, which starts a pod for it".to_owned();
        Err(OutputsError::Claim { claim, problem })
    };
    let mut files = RunFiles::find(local, &cluster, &run, &choice, Timestamp::now(), open).await?;
    let runtime = Handle::current();
    let is_alone = run.roles.iter().map(|role| role.count).sum::<u32>() == 1;
    let fetching = tokio::task::spawn_blocking(move || {
        let mut tasks = Vec::new();
        for found in &files.tasks {
            let manifest = found.manifest().clone();
            let folder = to.as_deref().map(|to| task_folder(to, &manifest, is_alone));
            if let Some(to) = folder.clone() {
                files.fetch(&runtime, found, &FetchOptions { to, force })?;
            }
            tasks.push(TaskFiles {
                task: manifest.task(),
                left_out: left_out(&manifest),
                folder,
                manifest,
            });
        }
        // The other files are fetched before the error is reported.
        match files.damaged.pop() {
            Some(error) => Err(error),
            None => Ok((tasks, files.problems())),
        }
    });
    // The task ends with a result, unless the runtime ends.
    let (mut tasks, problems) = fetching.await.map_err(|_| longshore::Error::Closed)??;
    // Missing outputs that belong to no file are reported with the first task.
    if let Some(first) = tasks.first_mut() {
        first.left_out.extend(problems);
    }
    Ok(tasks)
}

/// Removes a run with its outputs.
pub(crate) async fn remove(
    local: Option<LocalOutputs>,
    cluster: longshore::Cluster,
    run: Run,
) -> Result<(), Failure> {
    let places = match local {
        Some(_) => BTreeSet::new(),
        None => run_outputs::places(&cluster, &run)
            .await
            .unwrap_or_default(),
    };
    runs::remove(&cluster, &run).await?;
    // Outputs in a claim stay: only the command starts pods that mount it.
    for place in places {
        if let OutputsPlace::Store(_) = place {
            let open = async |_| Err(OutputsError::NotKept);
            let removed = place.remove(&run, open).await;
            removed.map_err(RunOutputsError::from)?;
        }
    }
    let Some(local) = local else {
        return Ok(());
    };
    let removing = tokio::task::spawn_blocking(move || {
        local.outputs.remove(&run.namespace, run.name.as_str())
    });
    let removed = removing.await.map_err(|_| longshore::Error::Closed)?;
    removed.map_err(RunOutputsError::from)?;
    Ok(())
}

fn left_out(manifest: &Manifest) -> Vec<String> {
    let files = manifest.left_out.iter();
    let mut all: Vec<String> = files
        .map(|file| format!("{} {} {}", manifest.task(), file.path, file.reason))
        .collect();
    if manifest.left_out_more > 0 {
        let more = manifest.left_out_more;
        all.push(format!("{more} more of {}", manifest.task()));
    }
    all.extend(manifest.problem.clone());
    all
}
