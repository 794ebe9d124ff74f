//! An existing run: its name, its roles, and its objects in the cluster.

use longshore_client::{
    Cluster, Item, LabelSelector, View,
    kinds::{Job, Pod},
};
use longshore_diagnosis::{
    evidence::JobEvidence,
    names::{self, RunName},
    role::RunRole,
};
use longshore_model::{ObjectMeta, facts::PodFacts};

/// An existing run, with the data to follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The name of the run.
    pub name: RunName,
    /// The namespace of the run.
    pub namespace: String,
    /// The roles of the run.
    pub roles: Vec<RunRole>,
    /// The schedule that created the run, if any. Their objects share its label.
    pub schedule: Option<RunName>,
}

impl Run {
    /// The value of the run's label, on all its objects.
    #[must_use]
    pub fn label(&self) -> &str {
        self.schedule.as_ref().unwrap_or(&self.name).as_str()
    }

    /// Returns true if a pod or Job with the run's label belongs to this run, and not to another
    /// run of the same schedule.
    pub(crate) fn has(&self, meta: &ObjectMeta) -> bool {
        if self.schedule.is_none() {
            return true;
        }
        let job = meta.controller_name("Job").unwrap_or(&meta.name);
        let end = job.rsplit_once('-').map(|(_, end)| end);
        end == self.execution()
    }

    /// The part of the name that distinguishes it from other runs of its schedule.
    #[must_use]
    pub fn execution(&self) -> Option<&str> {
        let name = self
            .name
            .as_str()
            .strip_prefix(self.schedule.as_ref()?.as_str())?;
        name.strip_prefix('-')
    }

    /// Returns true if a Job runs a service role.
    pub(crate) fn is_service(&self, job: &JobEvidence) -> bool {
        let mut roles = self.roles.iter();
        roles.any(|role| role.service && job.role() == Some(role.name.as_str()))
    }

    /// The current pods of the run.
    ///
    /// # Errors
    /// The cluster returns an error or does not answer.
    pub async fn list_pods(
        &self,
        cluster: &Cluster,
    ) -> Result<Vec<Item<Pod>>, longshore_client::Error> {
        let mut pods = self.pods(cluster)?.list().await?.items;
        pods.retain(|pod| self.has_pod(pod));
        Ok(pods)
    }

    /// Lists the Jobs, and then the pods. A pod that a Job counts as ended has ended in a list that
    /// begins later, but perhaps not in a list that is read at the same time.
    pub(crate) async fn list_jobs_and_pods(
        &self,
        cluster: &Cluster,
    ) -> Result<(Vec<JobEvidence>, Vec<Item<Pod>>), longshore_client::Error> {
        let jobs = self.found_jobs(cluster).await?;
        Ok((jobs, self.list_pods(cluster).await?))
    }

    /// Returns true if a pod with the run's label belongs to this run.
    pub(crate) fn has_pod(&self, pod: &Item<Pod>) -> bool {
        self.schedule.is_none()
            || pod
                .typed::<PodFacts>()
                .is_ok_and(|pod| self.has(&pod.metadata))
    }

    /// Selects the objects of the run, and of other runs of its schedule.
    pub(crate) fn selector(&self) -> Result<LabelSelector, longshore_client::Error> {
        Ok(LabelSelector::exactly([(names::RUN, self.label())])?)
    }

    /// The current Jobs of the run.
    pub(crate) async fn found_jobs(
        &self,
        cluster: &Cluster,
    ) -> Result<Vec<JobEvidence>, longshore_client::Error> {
        let found = self.jobs(cluster)?.list().await?.items;
        let mut jobs: Vec<JobEvidence> = found.iter().map(Item::typed).collect::<Result<_, _>>()?;
        jobs.retain(|job| self.has(&job.metadata));
        Ok(jobs)
    }

    pub(crate) fn pods(&self, cluster: &Cluster) -> Result<View<Pod>, longshore_client::Error> {
        Ok(cluster
            .pods()
            .in_namespace(&self.namespace)?
            .labels(self.selector()?))
    }

    pub(crate) fn jobs(&self, cluster: &Cluster) -> Result<View<Job>, longshore_client::Error> {
        Ok(cluster
            .jobs()
            .in_namespace(&self.namespace)?
            .labels(self.selector()?))
    }
}
