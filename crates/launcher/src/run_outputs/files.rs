//! The outputs of a run, wherever they are.

use std::collections::BTreeSet;

use jiff::Timestamp;
use longshore_client::Cluster;
use longshore_diagnosis::names;
use tokio::runtime::Handle;

use super::{LocalOutputs, RunOutputsError, StoredOutputs, StoredTask, TaskChoice, none};
use crate::{
    outputs::{FetchOptions, Fetched, Manifest, OutputRequest, OutputsError},
    run::Run,
};

/// The outputs of a run.
#[derive(Debug)]
pub struct RunFiles {
    place: Place,
    /// Those of its tasks.
    pub tasks: Vec<TaskFiles>,
}

/// Where they are.
#[derive(Debug)]
enum Place {
    Local(LocalOutputs),
    Stored(StoredOutputs),
}

/// The outputs of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskFiles {
    /// Kept by the cluster of this machine.
    Local(Manifest),
    /// In a store.
    Stored(StoredTask),
}

impl TaskFiles {
    /// The files.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        match self {
            Self::Local(manifest) => manifest,
            Self::Stored(task) => task.manifest(),
        }
    }
}

impl RunFiles {
    /// The outputs of a run's tasks: `local` if the cluster keeps them, otherwise those in the store
    /// that the run has recorded. The current files of running tasks are collected only locally; see
    /// [`uploaders`](super::uploaders) for the others.
    ///
    /// # Errors
    /// See [`RunOutputsError`].
    pub async fn find(
        local: Option<LocalOutputs>,
        cluster: &Cluster,
        run: &Run,
        choice: &TaskChoice,
        now: Timestamp,
    ) -> Result<Self, RunOutputsError> {
        if let Some(local) = local {
            let found = local.of_run(cluster, run, choice, now).await?;
            return Ok(Self {
                place: Place::Local(local),
                tasks: found.into_iter().map(TaskFiles::Local).collect(),
            });
        }
        run.check_task(choice.role.as_deref(), choice.index)?;
        let Some(store) = stores(cluster, run).await?.into_iter().next() else {
            return Err(match has_outputs(cluster, run).await? {
                true => OutputsError::NotKept.into(),
                false => none(cluster, run, choice).await?,
            });
        };
        let stored = StoredOutputs::new(&store, run, &[])?;
        let tasks = stored.of_tasks(tasks(run, choice)).await?;
        match tasks.is_empty() {
            true => Err(none(cluster, run, choice).await?),
            false => Ok(Self {
                place: Place::Stored(stored),
                tasks: tasks.into_iter().map(TaskFiles::Stored).collect(),
            }),
        }
    }

    /// The lists of files.
    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.tasks.iter().map(TaskFiles::manifest)
    }

    /// Writes the files of a task to a folder. Blocks; `runtime` handles the requests to a store.
    ///
    /// # Errors
    /// See [`Outputs::fetch`](crate::outputs::Outputs::fetch).
    pub fn fetch(
        &self,
        runtime: &Handle,
        task: &TaskFiles,
        options: &FetchOptions,
    ) -> Result<Fetched, OutputsError> {
        self.fetch_as(runtime, task, task.manifest(), options)
    }

    /// As [`fetch`](Self::fetch), but only the files of `manifest`, which may have other paths than
    /// those of the task.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch).
    pub fn fetch_as(
        &self,
        runtime: &Handle,
        task: &TaskFiles,
        manifest: &Manifest,
        options: &FetchOptions,
    ) -> Result<Fetched, OutputsError> {
        match (&self.place, task) {
            (Place::Local(local), _) => local.outputs.fetch(manifest, options),
            (Place::Stored(stored), TaskFiles::Stored(task)) => {
                stored.fetch(runtime, task, manifest, options)
            }
            (Place::Stored(_), TaskFiles::Local(_)) => Err(OutputsError::NotKept),
        }
    }
}

/// The chosen tasks of a run.
pub(super) fn tasks(run: &Run, choice: &TaskChoice) -> Vec<(String, u32)> {
    let all = run
        .roles
        .iter()
        .flat_map(|role| (0..role.count).map(|index| (role.name.clone(), index)));
    all.filter(|(role, index)| choice.has(role, *index))
        .collect()
}

/// The requests of a run's roles for outputs.
async fn requests(cluster: &Cluster, run: &Run) -> Result<Vec<OutputRequest>, RunOutputsError> {
    let jobs = run.found_jobs(cluster).await?;
    let annotations = jobs
        .iter()
        .filter_map(|job| job.metadata.annotations.get(names::OUTPUTS));
    let requests = annotations.map(|annotation| OutputRequest::parse(annotation));
    Ok(requests.collect::<Result<_, _>>()?)
}

/// Whether a run requests outputs.
///
/// # Errors
/// The cluster does not answer.
pub async fn has_outputs(cluster: &Cluster, run: &Run) -> Result<bool, RunOutputsError> {
    Ok(!requests(cluster, run).await?.is_empty())
}

/// The stores to which the tasks of a run upload outputs: usually none or one.
///
/// # Errors
/// The cluster does not answer, or an annotation is invalid.
pub async fn stores(cluster: &Cluster, run: &Run) -> Result<BTreeSet<String>, RunOutputsError> {
    let requests = requests(cluster, run).await?;
    Ok(requests
        .into_iter()
        .filter_map(|request| request.store)
        .collect())
}

/// Deletes the outputs of a run in a store. Returns the number of freed bytes.
///
/// # Errors
/// The store does not answer, or the client is not permitted to delete.
pub async fn remove_stored(store: &str, run: &Run) -> Result<u64, OutputsError> {
    let stored = StoredOutputs::new(store, run, &[])?;
    stored.remove(&tasks(run, &TaskChoice::default())).await
}
