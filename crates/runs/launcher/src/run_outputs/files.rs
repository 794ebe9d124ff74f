//! The outputs of a run, regardless of their location.

use std::collections::BTreeSet;

use jiff::Timestamp;
use longshore_client::Cluster;
use longshore_diagnosis::names;
use tokio::runtime::Handle;

use super::{
    Gap, GapKind, LocalOutputs, Objects, RunOutputsError, StoredOutputs, StoredTask, TaskChoice,
    gaps::{Attempts, reasons},
    none,
};
use crate::{
    outputs::{FetchOptions, Fetched, Manifest, OutputRequest, OutputsError},
    run::Run,
};

/// The outputs of a run.
#[derive(Debug)]
pub struct RunFiles {
    place: Place,
    /// The outputs of the tasks.
    pub tasks: Vec<TaskFiles>,
    /// The errors of tasks whose outputs are damaged.
    pub damaged: Vec<OutputsError>,
    /// The tasks without the outputs of their last attempt.
    pub gaps: Vec<Gap>,
}

/// The location of the outputs.
#[derive(Debug)]
enum Place {
    Local(LocalOutputs),
    Stored(StoredOutputs),
}

/// The outputs of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskFiles {
    /// Outputs that the cluster of this machine keeps.
    Local(Manifest),
    /// Outputs in a store.
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
    /// The outputs of a run's tasks: from `local` if the cluster keeps them, otherwise from the
    /// store that the run has recorded, or from its claim, which `open` gives access to. The
    /// current files of running tasks are collected only locally. See
    /// [`uploaders`](super::uploaders) for other clusters.
    ///
    /// # Errors
    /// See [`RunOutputsError`].
    pub async fn find(
        local: Option<LocalOutputs>,
        cluster: &Cluster,
        run: &Run,
        choice: &TaskChoice,
        now: Timestamp,
        open: impl AsyncFnOnce(String) -> Result<Box<dyn Objects>, OutputsError>,
    ) -> Result<Self, RunOutputsError> {
        if let Some(local) = local {
            let attempts = Attempts::list(cluster, run, choice).await?;
            let (found, damaged) = local.of_run(cluster, run, choice, now).await?;
            let gaps = attempts.gaps(cluster, &run.namespace, found.iter()).await;
            return Ok(Self {
                place: Place::Local(local),
                tasks: found.into_iter().map(TaskFiles::Local).collect(),
                damaged,
                gaps,
            });
        }
        run.check_task(choice.role.as_deref(), choice.index)?;
        let stored = match places(cluster, run).await?.into_iter().next() {
            Some(OutputsPlace::Store(store)) => StoredOutputs::new(&store, run, &[])?,
            Some(OutputsPlace::Claim(claim)) => StoredOutputs::of_objects(open(claim).await?, run),
            None => {
                let requests = requests(cluster, run).await?;
                return Err(match requests.iter().all(OutputRequest::is_only_metrics) {
                    true => none(cluster, run, choice).await?,
                    false => OutputsError::NotKept.into(),
                });
            }
        };
        let attempts = Attempts::list(cluster, run, choice).await?;
        let (tasks, damaged) = stored.of_tasks(tasks(run, choice)).await?;
        let manifests = tasks.iter().map(StoredTask::manifest);
        let gaps = attempts.gaps(cluster, &run.namespace, manifests).await;
        if tasks.is_empty() && damaged.is_empty() {
            return match reasons(&gaps) {
                Some(reasons) => Err(RunOutputsError::NotUploaded {
                    run: run.name.to_string(),
                    reasons,
                }),
                None => Err(none(cluster, run, choice).await?),
            };
        }
        Ok(Self {
            place: Place::Stored(stored),
            tasks: tasks.into_iter().map(TaskFiles::Stored).collect(),
            damaged,
            gaps,
        })
    }

    /// Sentences about missing outputs: damaged outputs, and gaps.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let damaged = self.damaged.iter().map(ToString::to_string);
        damaged
            .chain(self.gaps.iter().map(ToString::to_string))
            .collect()
    }

    /// Returns true if the outputs of a task that has ended are missing or damaged.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        let is_missing = |gap: &Gap| gap.kind == GapKind::Missing;
        !self.damaged.is_empty() || self.gaps.iter().any(is_missing)
    }

    /// Returns true if the outputs are from a running attempt, and the task is running.
    #[must_use]
    pub fn is_running(&self, manifest: &Manifest) -> bool {
        !manifest.ended && !self.gaps.iter().any(|gap| gap.task == manifest.task())
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

    /// Like [`fetch`](Self::fetch), but only for the files of `manifest`, whose paths may differ
    /// from the task's.
    ///
    /// # Errors
    /// The same as [`fetch`](Self::fetch).
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

/// The selected tasks of a run.
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

/// The location for outputs of a run's tasks on a cluster that does not keep them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutputsPlace {
    /// A store, by its URL.
    Store(String),
    /// A PersistentVolumeClaim.
    Claim(String),
}

impl OutputsPlace {
    /// Deletes the outputs of a run. Returns the number of freed bytes.
    ///
    /// # Errors
    /// The store does not answer, or the client is not permitted to delete.
    pub async fn remove(
        &self,
        run: &Run,
        open: impl AsyncFnOnce(String) -> Result<Box<dyn Objects>, OutputsError>,
    ) -> Result<u64, OutputsError> {
        let stored = match self {
            Self::Store(store) => StoredOutputs::new(store, run, &[])?,
            Self::Claim(claim) => StoredOutputs::of_objects(open(claim.clone()).await?, run),
        };
        stored.remove(&tasks(run, &TaskChoice::default())).await
    }
}

/// The locations to which the tasks of a run upload outputs, usually at most one.
///
/// # Errors
/// The cluster does not answer, or an annotation is invalid.
pub async fn places(
    cluster: &Cluster,
    run: &Run,
) -> Result<BTreeSet<OutputsPlace>, RunOutputsError> {
    let requests = requests(cluster, run).await?.into_iter();
    let places = requests.filter_map(|request| match (request.claim, request.store) {
        (Some(claim), _) => Some(OutputsPlace::Claim(claim)),
        (None, Some(store)) => Some(OutputsPlace::Store(store)),
        (None, None) => None,
    });
    Ok(places.collect())
}
