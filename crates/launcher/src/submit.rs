//! Creates the objects of a plan: all of them, or none.

use std::time::Duration;

use jiff::Timestamp;
use longshore_client::{Cluster, DeleteOptions, Item, Patch, View, kinds::Any};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{
    config::Workload,
    names,
    plan::Plan,
    run::{Run, RunRole},
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

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
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
        run: run_of(plan),
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
fn stamp(object: &mut Value, now: Timestamp) {
    let note = json!(format!("{now:.6}"));
    object["metadata"]["annotations"][names::SUBMITTED] = note.clone();
    // The Jobs of a JobSet have the annotations of its templates.
    let templates = object.pointer_mut("/spec/replicatedJobs");
    let templates = templates.and_then(Value::as_array_mut);
    for template in templates.into_iter().flatten() {
        template["template"]["metadata"]["annotations"][names::SUBMITTED] = note.clone();
    }
}

fn run_of(plan: &Plan) -> Run {
    let role = |job: &Value| RunRole {
        name: job["metadata"]["labels"][names::ROLE]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        count: job["spec"]["completions"]
            .as_u64()
            .and_then(|n| n.try_into().ok())
            .unwrap_or(1),
        service: false,
    };
    // The annotation also contains which roles are services.
    let declared = plan.jobs.first().and_then(|job| {
        let text = job["metadata"]["annotations"][names::ROLES].as_str()?;
        serde_json::from_str::<Vec<RunRole>>(text).ok()
    });
    Run {
        name: plan.run.clone(),
        namespace: plan.namespace.clone(),
        roles: declared.unwrap_or_else(|| plan.jobs.iter().map(role).collect()),
        schedule: None,
    }
}

struct Made<'a> {
    cluster: &'a Cluster,
    plan: &'a Plan,
    run: Run,
    workloads: Vec<Item<Any>>,
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
        let view = self.view()?;
        let failed = |kind: &str, object: &Value, source| SubmitError::Create {
            what: format!("{kind} {}", name_of(object)),
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
        config.map_err(|source| failed("Secret", &self.plan.config, source))?;
        if let (Some(object), Some(Err(source))) = (&self.plan.service, service) {
            return Err(failed("Service", object, source));
        }
        let mut workloads = self.plan.workloads().into_owned();
        let now = Timestamp::now();
        for object in &mut workloads {
            stamp(object, now);
        }
        let created =
            futures::future::join_all(workloads.iter().map(|object| view.create(object))).await;
        let kind = self.plan.workload.kind().gvk.kind.clone();
        let mut problem = None;
        for (object, created) in workloads.iter().zip(created) {
            match created {
                Ok(item) => self.workloads.push(item),
                Err(source) => problem = problem.or(Some(failed(&kind, object, source))),
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
            let wanted = bundle["metadata"]["annotations"][names::BUNDLE].as_str();
            let says = meta.annotations.get(names::BUNDLE).map(String::as_str);
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
            "name": first.name(),
            "uid": first.uid(),
        });
        // A strategic merge adds to the owners of a bundle that runs share.
        let patch = Patch::strategic(json!({"metadata": {"ownerReferences": [owner]}}));
        let namespace = &self.plan.namespace;
        let secrets = self.cluster.secrets().in_namespace(namespace)?;
        let services = self.cluster.services().in_namespace(namespace)?;
        let own_secret = async |object: Option<&Value>| match object {
            Some(object) => secrets.patch(name_of(object), &patch).await.map(drop),
            None => Ok(()),
        };
        let own_service = async || match &self.plan.service {
            Some(object) => services.patch(name_of(object), &patch).await.map(drop),
            None => Ok(()),
        };
        let own_jobs = futures::future::try_join_all(others.iter().map(|job| job.patch(&patch)));
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
        for item in &self.workloads {
            ignore(item.delete(&options).await);
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
