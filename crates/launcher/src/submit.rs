//! Creates the objects of a plan: all of them, or none.

use std::time::Duration;

use jiff::Timestamp;
use longshore_client::{
    Cluster, DeleteOptions, Kind, Patch, View,
    k8s_openapi::{Metadata, apimachinery::pkg::apis::meta::v1::ObjectMeta},
    kinds::{Any, Secret},
};
use serde_json::json;
use tokio::sync::oneshot;

use crate::{
    config::Workload,
    names,
    plan::{Plan, PlannedObject},
    run::Run,
    runs,
};

/// Why a run was not submitted. None of its objects is left in the cluster, unless the cluster
/// stopped answering during the submission.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The cluster refused an object, or did not answer.
    #[error("cannot create {what}: {source}")]
    Create {
        /// Kind and name.
        what: String,
        /// The cluster's error.
        source: longshore_client::Error,
    },
    /// The cluster returned an error or did not answer.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// A bundle with the same name has other content.
    #[error(
        "the Secret {name:?} contains another bundle than its annotation says; delete it and submit again"
    )]
    OtherBundle {
        /// The Secret's name.
        name: String,
    },
    /// No controller creates the Jobs of the JobSet.
    #[error(
        "the JobSet {name:?} has no Jobs after {seconds} s: check that its controller runs (`longshore get deployments --all-namespaces` shows it as jobset-controller-manager), or remove `jobset`"
    )]
    NoJobs {
        /// The JobSet's name.
        name: String,
        /// How long the submission waited for them, in seconds.
        seconds: u64,
    },
}

/// How long JobSet's controller may take to create Jobs, and the interval between checks.
const JOBS_TIMEOUT: Duration = Duration::from_secs(30);
const JOBS_POLL_INTERVAL: Duration = Duration::from_millis(200);

impl SubmitError {
    /// The cluster's error, if it is the cause.
    #[must_use]
    pub fn cluster_error(&self) -> Option<&longshore_client::Error> {
        match self {
            Self::Create { source, .. } | Self::Cluster(source) => Some(source),
            _ => None,
        }
    }
}

fn name_of(object: &impl Metadata<Ty = ObjectMeta>) -> &str {
    object.metadata().name.as_deref().unwrap_or_default()
}

/// Creates the objects of a plan. If one fails, the objects created before it are deleted. The
/// first Job, CronJob or JobSet owns the other objects, so that they are deleted with it.
///
/// If the future is dropped, no objects are left: a pending request cannot be cancelled, so it
/// completes in the background, and its objects are removed.
///
/// # Errors
/// Names the object and the cluster's error.
pub async fn submit(cluster: &Cluster, plan: &Plan) -> Result<Run, SubmitError> {
    let (sender, receiver) = oneshot::channel();
    let (cluster, plan) = (cluster.clone(), plan.clone());
    tokio::spawn(async move {
        let result = create(&cluster, &plan).await;
        if let Err(Ok(run)) = sender.send(result)
            && let Err(error) = runs::remove(&cluster, &run).await
        {
            tracing::warn!(%error, run = %run.name, "cannot remove an abandoned run");
        }
    });
    // The task sends its result, unless the runtime ends.
    receiver
        .await
        .map_err(|_| longshore_client::Error::Closed)?
}

async fn create(cluster: &Cluster, plan: &Plan) -> Result<Run, SubmitError> {
    let mut made = Made {
        cluster,
        plan,
        run: Run {
            name: plan.run.clone(),
            namespace: plan.namespace.clone(),
            roles: plan.roles.iter().map(|role| role.role.clone()).collect(),
            schedule: None,
        },
        workloads: Vec::new(),
        config: false,
        service: false,
    };
    match made.create().await {
        Ok(()) => Ok(made.run),
        Err(error) => {
            made.undo().await;
            Err(error)
        }
    }
}

/// Records when a workload is submitted. Does not apply to the runs that a schedule creates.
fn stamp(object: &mut PlannedObject, now: Timestamp) {
    let add = |metadata: &mut ObjectMeta| {
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(names::SUBMITTED.to_owned(), format!("{now:.6}"));
    };
    match object {
        PlannedObject::Job(job) => add(&mut job.metadata),
        PlannedObject::CronJob(schedule) => add(&mut schedule.metadata),
        PlannedObject::JobSet(set) => {
            add(&mut set.metadata);
            // Its Jobs have the annotations of its templates.
            for job in &mut set.spec.replicated_jobs {
                add(job.template.metadata.get_or_insert_default());
            }
        }
        PlannedObject::Secret(_) | PlannedObject::Service(_) => {}
    }
}

/// A created Job, CronJob or JobSet.
struct Created {
    name: String,
    uid: String,
}

struct Made<'a> {
    cluster: &'a Cluster,
    plan: &'a Plan,
    run: Run,
    workloads: Vec<Created>,
    config: bool,
    service: bool,
}

impl Made<'_> {
    /// The Jobs, the CronJobs, or the JobSet.
    fn view(&self) -> Result<View<Any>, SubmitError> {
        Ok(self
            .cluster
            .view_of(self.plan.workload.kind())
            .in_namespace(&self.plan.namespace)?)
    }

    async fn create(&mut self) -> Result<(), SubmitError> {
        let namespace = &self.plan.namespace;
        let secrets = self.cluster.secrets().in_namespace(namespace)?;
        let services = self.cluster.services().in_namespace(namespace)?;
        let failed = |kind: &str, name: &str, source| SubmitError::Create {
            what: format!("{kind} {name}"),
            source,
        };

        // Create the pods' dependencies first, because pods may start immediately.
        let (bundle, config, service) = futures::join!(
            self.put_bundle(),
            secrets.create(&self.plan.config),
            async {
                match &self.plan.service {
                    Some(service) => Some(services.create(service).await),
                    None => None,
                }
            },
        );
        self.config = config.is_ok();
        self.service = matches!(service, Some(Ok(_)));
        bundle?;
        config.map_err(|source| failed("Secret", name_of(&self.plan.config), source))?;
        if let (Some(object), Some(Err(source))) = (&self.plan.service, service) {
            return Err(failed("Service", name_of(object), source));
        }
        let mut workloads = self.plan.workloads();
        let now = Timestamp::now();
        for object in &mut workloads {
            stamp(object, now);
        }
        let created = workloads.iter().map(|object| self.create_object(object));
        let created = futures::future::join_all(created).await;
        let mut problem = None;
        for (object, created) in workloads.iter().zip(created) {
            match created {
                Ok(created) => self.workloads.push(created),
                Err(source) => {
                    problem = problem.or(Some(failed(object.kind(), object.name(), source)));
                }
            }
        }
        if let Some(problem) = problem {
            return Err(problem);
        }
        self.own().await?;
        match self.plan.workload {
            Workload::JobSet => self.jobs_of_set().await,
            _ => Ok(()),
        }
    }

    async fn create_object(
        &self,
        object: &PlannedObject,
    ) -> Result<Created, longshore_client::Error> {
        match object {
            PlannedObject::Secret(secret) => self.create_typed(&**secret).await,
            PlannedObject::Service(service) => self.create_typed(&**service).await,
            PlannedObject::Job(job) => self.create_typed(&**job).await,
            PlannedObject::CronJob(schedule) => self.create_typed(&**schedule).await,
            PlannedObject::JobSet(set) => self.create_typed(&**set).await,
        }
    }

    async fn create_typed<K: Kind>(&self, object: &K) -> Result<Created, longshore_client::Error> {
        let view = self
            .cluster
            .view::<K>()
            .in_namespace(&self.plan.namespace)?;
        let created = view.create(object).await?;
        Ok(Created {
            name: created.name().to_owned(),
            uid: created.uid().to_owned(),
        })
    }

    /// Waits for the first Job of JobSet's controller: without any, there is no run. It does not
    /// wait for all of them, because a short run may have ended and deleted its service roles.
    async fn jobs_of_set(&self) -> Result<(), SubmitError> {
        let made = async {
            loop {
                let jobs = self.run.jobs(self.cluster)?.list().await?;
                if !jobs.items.is_empty() {
                    return Ok(());
                }
                tokio::time::sleep(JOBS_POLL_INTERVAL).await;
            }
        };
        match tokio::time::timeout(JOBS_TIMEOUT, made).await {
            Ok(made) => made,
            Err(_) => Err(SubmitError::NoJobs {
                name: self.plan.run.to_string(),
                seconds: JOBS_TIMEOUT.as_secs(),
            }),
        }
    }

    /// Creates the bundle's Secret unless it exists.
    async fn put_bundle(&self) -> Result<(), SubmitError> {
        let Some(bundle) = &self.plan.bundle else {
            return Ok(());
        };
        let secrets = self.cluster.secrets().in_namespace(&self.plan.namespace)?;
        let failed = |source| SubmitError::Create {
            what: format!("Secret {}", name_of(bundle)),
            source,
        };
        // It was deleted between the two requests: create it again.
        for _ in 0..3 {
            match secrets.create(bundle).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_already_exists() => {}
                Err(error) => return Err(failed(error)),
            }
            let Some(found) = secrets.find(name_of(bundle)).await? else {
                continue;
            };
            let meta = found.meta();
            if meta.deletion_timestamp.is_some() {
                continue;
            }
            let wanted = bundle.metadata.annotations.as_ref();
            let wanted = wanted.and_then(|annotations| annotations.get(names::BUNDLE));
            let says = meta.annotations.get(names::BUNDLE);
            return match says == wanted {
                true => Ok(()),
                false => Err(SubmitError::OtherBundle {
                    name: name_of(bundle).to_owned(),
                }),
            };
        }
        Err(SubmitError::OtherBundle {
            name: name_of(bundle).to_owned(),
        })
    }

    /// Makes the first Job the owner of the other objects.
    async fn own(&self) -> Result<(), SubmitError> {
        let Some((first, others)) = self.workloads.split_first() else {
            return Ok(());
        };
        let kind = self.plan.workload.kind();
        let owner = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.gvk.kind,
            "name": first.name,
            "uid": first.uid,
        });
        // A strategic merge adds to the owners of a bundle that runs share.
        let patch = Patch::strategic(json!({"metadata": {"ownerReferences": [owner]}}));
        let namespace = &self.plan.namespace;
        let secrets = self.cluster.secrets().in_namespace(namespace)?;
        let services = self.cluster.services().in_namespace(namespace)?;
        let own_secret = async |object: Option<&Secret>| match object {
            Some(object) => secrets.patch(name_of(object), &patch).await.map(drop),
            None => Ok(()),
        };
        let own_service = async || match &self.plan.service {
            Some(object) => services.patch(name_of(object), &patch).await.map(drop),
            None => Ok(()),
        };
        let view = self.view()?;
        let own_jobs = others.iter().map(|other| view.patch(&other.name, &patch));
        let own_jobs = futures::future::try_join_all(own_jobs);
        let (bundle, config, service, jobs) = futures::join!(
            own_secret(self.plan.bundle.as_ref()),
            own_secret(Some(&self.plan.config)),
            own_service(),
            own_jobs,
        );
        match bundle {
            // The run that owned it was removed in the meantime.
            Err(error) if error.is_not_found() => {
                self.put_bundle().await?;
                own_secret(self.plan.bundle.as_ref()).await?;
            }
            result => result?,
        }
        config?;
        service?;
        jobs?;
        Ok(())
    }

    /// Deletes the created objects. The bundle is kept for the next attempt if it has an owner.
    async fn undo(&self) {
        let options = DeleteOptions::background();
        let ignore = |result: Result<(), longshore_client::Error>| {
            if let Err(error) = result {
                tracing::warn!(%error, "an object of a failed submission is left");
            }
        };
        if let Ok(view) = self.view() {
            for created in &self.workloads {
                ignore(view.delete(&created.name, &options).await);
            }
        }
        let namespace = &self.plan.namespace;
        if self.config
            && let Ok(secrets) = self.cluster.secrets().in_namespace(namespace)
        {
            ignore(secrets.delete(name_of(&self.plan.config), &options).await);
        }
        if let Some(service) = self.plan.service.as_ref().filter(|_| self.service)
            && let Ok(services) = self.cluster.services().in_namespace(namespace)
        {
            ignore(services.delete(name_of(service), &options).await);
        }
        if let Some(bundle) = &self.plan.bundle
            && let Ok(secrets) = self.cluster.secrets().in_namespace(namespace)
            && let Ok(Some(found)) = secrets.find(name_of(bundle)).await
            && found.meta().owner_references.is_empty()
        {
            let options = DeleteOptions {
                uid: Some(found.uid().to_owned()),
                ..DeleteOptions::background()
            };
            ignore(found.delete(&options).await);
        }
    }
}
