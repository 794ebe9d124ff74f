//! The outputs of a run. The node has kept the outputs of ended tasks, and the outputs of running
//! tasks are collected on request. On other clusters, tasks have uploaded them to a store
//! (`stored`).

mod files;
mod gaps;
mod keeper;
mod objects;
mod running;
mod stored;
mod uploads;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use longshore_client::{Cluster, Item};
use longshore_diagnosis::{
    evidence::{JobEvidence, RunPod as _},
    names,
};
use longshore_model::{ObjectMeta, facts::PodFacts};

use crate::{
    outputs::{Manifest, OutputRequest, OutputTask, Outputs, OutputsError},
    run::Run,
    runs::TaskError,
};

pub use files::{OutputsPlace, RunFiles, TaskFiles, places};
pub use gaps::{Gap, GapKind};
pub use keeper::keep;
pub use objects::{ObjectFuture, ObjectList, ObjectStream, Objects};
pub use running::{Uploader, uploaders};
pub use stored::{StoredOutputs, StoredTask};
pub(crate) use uploads::{add_claims, add_uploads};

/// The outputs of a cluster on this machine, and the folder of its pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalOutputs {
    /// The kept outputs.
    pub outputs: Outputs,
    /// The folder of the node that contains a folder for each pod.
    pub pods: PathBuf,
}

/// A selection of tasks of a run: all tasks, the tasks of a role, or a single task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskChoice {
    /// The role. `None` for all roles.
    pub role: Option<String>,
    /// The index. `None` for all tasks of each role.
    pub index: Option<u32>,
}

impl TaskChoice {
    /// Parses `ROLE` or `ROLE/INDEX`. `None` if the text is neither.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (role, index) = match text.split_once('/') {
            Some((role, index)) => (role, Some(index.parse().ok()?)),
            None => (text, None),
        };
        (!role.is_empty()).then(|| Self {
            role: Some(role.to_owned()),
            index,
        })
    }

    /// Completes the selection: in a run with one role, an index alone is enough.
    #[must_use]
    pub fn in_run(&self, run: &Run) -> Self {
        let Some(role) = &self.role else {
            return self.clone();
        };
        let (role, index) = run.role_and_index(role, self.index);
        Self {
            role: Some(role.to_owned()),
            index,
        }
    }

    fn has(&self, role: &str, index: u32) -> bool {
        self.role.as_deref().is_none_or(|own| own == role)
            && self.index.is_none_or(|own| own == index)
    }
}

/// The reason why a run's outputs are not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunOutputsError {
    /// The run does not request outputs.
    #[error(
        "the run {run} requests no outputs: set `outputs` in longshore.toml, or use --output-files, and run it again"
    )]
    NotRequested {
        /// The run.
        run: String,
    },
    /// No task has files yet, or the outputs were removed.
    #[error(
        "the run {run} has no outputs{}: no such task has started to run, its outputs were removed, or they could not be kept (the task's log then says why)",
        task.as_ref().map(|task| format!(" of {task}")).unwrap_or_default()
    )]
    None {
        /// The run.
        run: String,
        /// The requested role or task.
        task: Option<String>,
    },
    /// The tasks could not upload their files.
    #[error("the run {run} has no outputs: {reasons}")]
    NotUploaded {
        /// The run.
        run: String,
        /// The reasons that the tasks have reported.
        reasons: String,
    },
    /// The text is not a task or role.
    #[error("{0:?} is neither a task nor a role: write ROLE/INDEX, as in worker/0, or ROLE")]
    NotATask(String),
    /// The run does not have the task.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The outputs cannot be read.
    #[error(transparent)]
    Outputs(#[from] OutputsError),
    /// The cluster does not answer.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
}

impl LocalOutputs {
    /// The outputs of a run's tasks, and the errors of damaged lists. Collects the current files of
    /// running tasks first.
    ///
    /// # Errors
    /// See [`RunOutputsError`].
    pub async fn of_run(
        &self,
        cluster: &Cluster,
        run: &Run,
        choice: &TaskChoice,
        now: Timestamp,
    ) -> Result<(Vec<Manifest>, Vec<OutputsError>), RunOutputsError> {
        run.check_task(choice.role.as_deref(), choice.index)?;
        let running = self.running(cluster, run, choice).await?;
        let (local, run_name) = (self.clone(), run.name.to_string());
        let namespace = run.namespace.clone();
        let reading = tokio::task::spawn_blocking(move || {
            for (task, volume) in running {
                local.outputs.collect(&task, &volume, false, now)?;
            }
            local.outputs.of_tasks(&namespace, &run_name)
        });
        // The work ends with a result, unless the runtime shuts down.
        let found = reading.await.map_err(|_| longshore_client::Error::Closed)?;
        let (mut found, damaged) = found?;
        found.retain(|manifest| choice.has(&manifest.role, manifest.index));
        if !found.is_empty() || !damaged.is_empty() {
            return Ok((found, damaged));
        }
        Err(none(cluster, run, choice).await?)
    }

    /// The running tasks that request outputs, and their volumes.
    async fn running(
        &self,
        cluster: &Cluster,
        run: &Run,
        choice: &TaskChoice,
    ) -> Result<Vec<(OutputTask, PathBuf)>, RunOutputsError> {
        let mut running = Vec::new();
        for pod in run.list_pods(cluster).await? {
            let pod: PodFacts = Item::typed(&pod)?;
            let is_chosen = pod
                .task()
                .is_some_and(|task| choice.has(&task.role, task.index));
            // Before the task starts, the code may be incomplete.
            if !is_chosen || !pod.has_started() || pod.is_over() {
                continue;
            }
            if let Some(task) = OutputTask::of(&pod.metadata)?
                && let Some(volume) = self.volume(&pod.metadata.uid)
            {
                running.push((task, volume));
            }
        }
        Ok(running)
    }

    /// The run's volume of a pod.
    pub(crate) fn volume(&self, uid: &str) -> Option<PathBuf> {
        let is_uid = uid
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (is_uid && !uid.is_empty()).then(|| volume(&self.pods.join(uid).join("volumes")))
    }
}

/// The reason why no outputs were found.
async fn none(
    cluster: &Cluster,
    run: &Run,
    choice: &TaskChoice,
) -> Result<RunOutputsError, longshore_client::Error> {
    let jobs = run.found_jobs(cluster).await?;
    let requests = |job: &JobEvidence| {
        let text = job.metadata.annotations.get(names::OUTPUTS);
        text.is_some_and(|text| !OutputRequest::parse(text).is_ok_and(|own| own.is_only_metrics()))
    };
    let is_requested = jobs.is_empty() || jobs.iter().any(requests);
    let run = run.name.to_string();
    Ok(match is_requested {
        true => RunOutputsError::None {
            run,
            task: choice.role.clone().map(|role| match choice.index {
                Some(index) => format!("{role}/{index}"),
                None => role,
            }),
        },
        false => RunOutputsError::NotRequested { run },
    })
}

/// Keeps the outputs of a task whose pod has ended. Called by the node of a cluster with the folder
/// of the pod's volumes. Errors are logged.
pub fn keep_ended(outputs: &Outputs, pod: &ObjectMeta, volumes: &Path, now: Timestamp) {
    let kept = OutputTask::of(pod).and_then(|task| match task {
        Some(task) => outputs.collect(&task, &volume(volumes), true, now),
        None => Ok(None),
    });
    let pod = pod.name.as_str();
    match kept {
        Ok(Some(kept)) => {
            let (files, left_out) = (kept.files.len(), kept.left_out_count());
            tracing::info!(pod, files, left_out, "kept outputs of a task");
        }
        Ok(None) => {}
        Err(error) => tracing::warn!(pod, %error, "cannot keep outputs of a task"),
    }
}

/// The run's volume in the folder of a pod's volumes.
fn volume(volumes: &Path) -> PathBuf {
    volumes.join(names::HOME_VOLUME)
}
