//! A submission in progress.

use jiff::Timestamp;
use longshore_client::{
    Cluster, Error, Kind, View,
    k8s_openapi::{Metadata, apimachinery::pkg::apis::meta::v1::ObjectMeta},
    kinds::Any,
};

use super::{SubmitError, stamp::stamp};
use crate::{
    config::Workload,
    plan::{Plan, PlannedObject},
    run::Run,
};

/// A created Job, CronJob or JobSet.
pub(super) struct Created {
    pub(super) name: String,
    pub(super) uid: String,
}

/// The objects of a plan, and the created ones among them.
pub(super) struct Submission<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) plan: &'a Plan,
    pub(super) run: Run,
    pub(super) workloads: Vec<Created>,
    pub(super) has_config: bool,
    pub(super) has_service: bool,
    /// The Job or CronJob that notifies about the run.
    pub(super) notifier: Option<Created>,
}

impl<'a> Submission<'a> {
    pub(super) fn new(cluster: &'a Cluster, plan: &'a Plan) -> Self {
        Self {
            cluster,
            plan,
            run: plan.as_run(),
            workloads: Vec::new(),
            has_config: false,
            has_service: false,
            notifier: None,
        }
    }

    /// The Jobs, the CronJobs, or the JobSet.
    pub(super) fn view(&self) -> Result<View<Any>, SubmitError> {
        Ok(self
            .cluster
            .view_of(self.plan.workload.kind())
            .in_namespace(&self.plan.namespace)?)
    }

    /// Creates all objects.
    pub(super) async fn create(&mut self) -> Result<(), SubmitError> {
        let namespace = &self.plan.namespace;
        let secrets = self.cluster.secrets().in_namespace(namespace)?;
        let services = self.cluster.services().in_namespace(namespace)?;
        let failed = |kind: &str, name: &str, source| SubmitError::Create {
            what: format!("{kind} {name}"),
            source,
        };

        // Create the pods' dependencies first, because pods may start immediately, and the
        // notifier, because this client may be killed.
        let (bundle, config, service, (notifier, has_notifier)) = futures::join!(
            self.put_bundle(),
            secrets.create(&self.plan.config),
            async {
                match &self.plan.service {
                    Some(service) => Some(services.create(service).await),
                    None => None,
                }
            },
            self.create_notifier(),
        );
        self.notifier = notifier;
        self.has_config = config.is_ok();
        self.has_service = matches!(service, Some(Ok(_)));
        bundle?;
        config.map_err(|source| failed("Secret", name_of(&self.plan.config), source))?;
        if let (Some(object), Some(Err(source))) = (&self.plan.service, service) {
            return Err(failed("Service", name_of(object), source));
        }
        has_notifier?;
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

    pub(super) async fn create_object(&self, object: &PlannedObject) -> Result<Created, Error> {
        match object {
            PlannedObject::Secret(secret) => self.create_typed(&**secret).await,
            PlannedObject::Service(service) => self.create_typed(&**service).await,
            PlannedObject::Job(job) => self.create_typed(&**job).await,
            PlannedObject::CronJob(schedule) => self.create_typed(&**schedule).await,
            PlannedObject::JobSet(set) => self.create_typed(&**set).await,
            PlannedObject::ServiceAccount(account) => self.create_typed(&**account).await,
            PlannedObject::Role(role) => self.create_typed(&**role).await,
            PlannedObject::RoleBinding(binding) => self.create_typed(&**binding).await,
        }
    }

    async fn create_typed<K: Kind>(&self, object: &K) -> Result<Created, Error> {
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
}

/// The name of an object.
pub(super) fn name_of(object: &impl Metadata<Ty = ObjectMeta>) -> &str {
    object.metadata().name.as_deref().unwrap_or_default()
}
