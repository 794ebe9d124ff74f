//! The list of runs, kept up to date by watches.

use longshore_client::{
    Cache, Changes, Cluster, Item, LabelSelector,
    kinds::{CronJob, Job, Pod},
};
use longshore_diagnosis::names;

use super::{Run, RunSummary, RunsError, Views, summarize};

/// The runs of a namespace, or of all visible namespaces, as they change.
#[derive(Debug)]
pub struct WatchedRuns {
    jobs: (Cache<Job>, Changes<Job>),
    pods: (Cache<Pod>, Changes<Pod>),
    /// The CronJobs. `None` without permission to list them.
    schedules: Option<(Cache<CronJob>, Changes<CronJob>)>,
}

impl WatchedRuns {
    /// Watches the runs whose labels match, in a namespace or in all.
    ///
    /// # Errors
    /// [`RunsError::Cluster`].
    pub async fn start(
        cluster: &Cluster,
        namespace: Option<&str>,
        selector: &LabelSelector,
    ) -> Result<Self, RunsError> {
        let views = Views::new(cluster, namespace, selector)?;
        let schedules = async {
            match views.schedules.cache().await {
                Ok(cache) => Ok(Some(cache)),
                Err(error) if error.is_forbidden() || error.is_not_found() => Ok(None),
                Err(error) => Err(error),
            }
        };
        let (jobs, pods, schedules) =
            futures::try_join!(views.jobs.cache(), views.pods.cache(), schedules)?;
        let mut watched = Self {
            jobs: (jobs.clone(), jobs.subscribe()),
            pods: (pods.clone(), pods.subscribe()),
            schedules: schedules.map(|cache| (cache.clone(), cache.subscribe())),
        };
        watched.drain();
        Ok(watched)
    }

    /// The current runs, newest first.
    ///
    /// # Errors
    /// [`RunsError::Cluster`] if an object cannot be parsed.
    pub fn now(&self) -> Result<Vec<RunSummary>, RunsError> {
        let schedules = self.schedules.as_ref();
        let schedules = schedules.map(|(cache, _)| cache.items());
        summarize(
            &self.jobs.0.items(),
            &self.pods.0.items(),
            &schedules.unwrap_or_default(),
        )
    }

    /// The pods of the runs, kept up to date as long as the returned value exists.
    #[must_use]
    pub fn pods(&self) -> RunPods {
        RunPods(self.pods.0.clone())
    }

    /// Waits until an object of a run has changed. Returns false if the cluster was closed.
    /// Cancel-safe.
    pub async fn changed(&mut self) -> bool {
        let Self {
            jobs,
            pods,
            schedules,
        } = self;
        let schedules = async {
            match schedules {
                Some((_, changes)) => changes.next().await.is_some(),
                None => std::future::pending().await,
            }
        };
        let is_open = tokio::select! {
            change = jobs.1.next() => change.is_some(),
            change = pods.1.next() => change.is_some(),
            is_open = schedules => is_open,
        };
        self.drain();
        is_open
    }

    /// Drains the pending changes, which [`WatchedRuns::now`] includes.
    fn drain(&mut self) {
        while self.jobs.1.try_next().is_some() {}
        while self.pods.1.try_next().is_some() {}
        if let Some((_, changes)) = &mut self.schedules {
            while changes.try_next().is_some() {}
        }
    }
}

/// The pods of all watched runs.
#[derive(Debug, Clone)]
pub struct RunPods(Cache<Pod>);

impl RunPods {
    /// The current pods of a run.
    #[must_use]
    pub fn of(&self, run: &Run) -> Vec<Item<Pod>> {
        let mut pods = self.0.by_label(names::RUN, run.label());
        let namespace = Some(run.namespace.as_str());
        pods.retain(|pod| pod.namespace() == namespace && run.has_pod(pod));
        pods
    }
}
