//! The objects behind a run.

use longshore_client::{
    Cluster, Error, Item, List, Object, View,
    kinds::{CronJob, Job, Pod, Secret, Service},
};
use longshore_model::ObjectMeta;
use serde_json::Value;

use super::{Run, RunsError};

/// The kinds of a run's objects, in the order of [`objects`].
pub const KINDS: &[&str] = &["CronJob", "Job", "Service", "Secret", "Pod"];

/// An object of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunObject {
    /// The kind, one of [`KINDS`].
    pub kind: &'static str,
    /// The metadata of the object.
    pub metadata: ObjectMeta,
}

/// The objects of a run, and the kinds that could not be listed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunObjects {
    /// The objects, by kind and name.
    pub objects: Vec<RunObject>,
    /// The kinds that could not be listed, with the reasons.
    pub unseen: Vec<String>,
}

/// Lists the objects of a run. Kinds without permission to list them are reported in
/// [`RunObjects::unseen`].
///
/// # Errors
/// [`RunsError::Cluster`] if the cluster does not respond.
pub async fn objects(cluster: &Cluster, run: &Run) -> Result<RunObjects, RunsError> {
    let views = Views::of(cluster, run)?;
    let (schedules, jobs, services, secrets, pods) = futures::join!(
        views.schedules.list(),
        views.jobs.list(),
        views.services.list(),
        views.secrets.list(),
        views.pods.list(),
    );
    let mut found = RunObjects::default();
    found.add("CronJob", run, schedules)?;
    found.add("Job", run, jobs)?;
    found.add("Service", run, services)?;
    found.add("Secret", run, secrets)?;
    found.add("Pod", run, pods)?;
    Ok(found)
}

/// Reads an object of a run. `None` if it does not exist, or does not belong to the run.
///
/// # Errors
/// [`RunsError::Cluster`].
pub async fn object(
    cluster: &Cluster,
    run: &Run,
    kind: &str,
    name: &str,
) -> Result<Option<Value>, RunsError> {
    let views = Views::of(cluster, run)?;
    match kind {
        "CronJob" => own(run, kind, views.schedules.find(name).await?),
        "Job" => own(run, kind, views.jobs.find(name).await?),
        "Service" => own(run, kind, views.services.find(name).await?),
        "Secret" => own(run, kind, views.secrets.find(name).await?),
        "Pod" => own(run, kind, views.pods.find(name).await?),
        _ => Ok(None),
    }
}

/// The value of an object, if it belongs to the run. Requests for a single object ignore the
/// selector of the view.
fn own<K: Object>(
    run: &Run,
    kind: &str,
    found: Option<Item<K>>,
) -> Result<Option<Value>, RunsError> {
    let Some(item) = found else {
        return Ok(None);
    };
    let has_label = item
        .meta()
        .labels
        .get(super::names::RUN)
        .is_some_and(|label| label == run.label());
    match has_label && belongs(run, kind, item.meta()) {
        true => Ok(Some(item.raw()?)),
        false => Ok(None),
    }
}

/// Returns true if an object with the run's label belongs to this run. The runs of a schedule share
/// all objects except Jobs and pods.
fn belongs(run: &Run, kind: &str, meta: &ObjectMeta) -> bool {
    !matches!(kind, "Job" | "Pod") || run.has(meta)
}

impl RunObjects {
    fn add<K: Object>(
        &mut self,
        kind: &'static str,
        run: &Run,
        listed: Result<List<K>, Error>,
    ) -> Result<(), RunsError> {
        match listed {
            Ok(list) => {
                let items = list.items.iter();
                let own = items.filter(|item| belongs(run, kind, item.meta()));
                self.objects.extend(own.map(|item| RunObject {
                    kind,
                    metadata: item.meta().clone(),
                }));
                Ok(())
            }
            Err(error) if error.is_forbidden() || error.is_not_found() => {
                self.unseen.push(format!("{kind}: {error}"));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The views of a run's objects.
struct Views {
    schedules: View<CronJob>,
    jobs: View<Job>,
    services: View<Service>,
    secrets: View<Secret>,
    pods: View<Pod>,
}

impl Views {
    fn of(cluster: &Cluster, run: &Run) -> Result<Self, Error> {
        let (namespace, selector) = (&run.namespace, run.selector()?);
        Ok(Self {
            schedules: cluster
                .cronjobs()
                .in_namespace(namespace)?
                .labels(selector.clone()),
            jobs: run.jobs(cluster)?,
            services: cluster
                .services()
                .in_namespace(namespace)?
                .labels(selector.clone()),
            secrets: cluster.secrets().in_namespace(namespace)?.labels(selector),
            pods: run.pods(cluster)?,
        })
    }
}
