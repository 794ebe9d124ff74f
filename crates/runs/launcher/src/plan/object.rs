//! An object of a plan.

use longshore_client::k8s_openapi::{
    Metadata, Resource,
    api::{
        batch::v1::{CronJob, Job},
        core::v1::{Secret, Service, ServiceAccount},
        rbac::v1::{Role, RoleBinding},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use serde::Serialize;

use crate::jobset::JobSet;

/// An object of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum PlannedObject {
    /// The configuration of the pods, or a bundle.
    Secret(Box<Secret>),
    /// The Service that resolves the host names of tasks.
    Service(Box<Service>),
    /// The Job of a role.
    Job(Box<Job>),
    /// The CronJob of a role.
    CronJob(Box<CronJob>),
    /// The JobSet of all roles.
    JobSet(Box<JobSet>),
    /// The identity of the pod that notifies about the run.
    ServiceAccount(Box<ServiceAccount>),
    /// The permissions of the service account.
    Role(Box<Role>),
    /// The binding of the permissions.
    RoleBinding(Box<RoleBinding>),
}

macro_rules! of_each_kind {
    ($value:expr, $object:ident => $result:expr) => {
        match $value {
            PlannedObject::Secret($object) => $result,
            PlannedObject::Service($object) => $result,
            PlannedObject::Job($object) => $result,
            PlannedObject::CronJob($object) => $result,
            PlannedObject::JobSet($object) => $result,
            PlannedObject::ServiceAccount($object) => $result,
            PlannedObject::Role($object) => $result,
            PlannedObject::RoleBinding($object) => $result,
        }
    };
}

impl PlannedObject {
    /// The kind, such as `Job`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        fn kind<K: Resource>(_: &K) -> &'static str {
            K::KIND
        }
        of_each_kind!(self, object => kind(&**object))
    }

    /// The version of the API, such as `batch/v1`.
    pub(crate) fn api_version(&self) -> &'static str {
        fn version<K: Resource>(_: &K) -> &'static str {
            K::API_VERSION
        }
        of_each_kind!(self, object => version(&**object))
    }

    /// Suspends the object if it is a Job or a CronJob.
    pub(crate) fn suspend(&mut self) {
        match self {
            Self::Job(job) => job.spec.get_or_insert_default().suspend = Some(true),
            Self::CronJob(schedule) => schedule.spec.suspend = Some(true),
            _ => {}
        }
    }

    /// The metadata.
    #[must_use]
    pub fn metadata(&self) -> &ObjectMeta {
        of_each_kind!(self, object => object.metadata())
    }

    /// The metadata, to change it.
    pub(crate) fn metadata_mut(&mut self) -> &mut ObjectMeta {
        of_each_kind!(self, object => object.metadata_mut())
    }

    /// Sets the owner of the object.
    pub(crate) fn own(&mut self, owner: OwnerReference) {
        self.metadata_mut().owner_references = Some(vec![owner]);
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata().name.as_deref().unwrap_or_default()
    }
}

macro_rules! from_each_kind {
    ($($kind:ident)*) => {$(
        impl From<$kind> for PlannedObject {
            fn from(object: $kind) -> Self {
                Self::$kind(Box::new(object))
            }
        }
    )*};
}

from_each_kind!(Secret Service Job CronJob JobSet ServiceAccount Role RoleBinding);
