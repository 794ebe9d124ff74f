//! The kinds whose schemas the registry collects, one line a kind.

use k8s_openapi::{
    ListableResource, Resource,
    api::{
        admissionregistration::v1 as admissionregistration, apps::v1 as apps,
        authentication::v1 as authentication, authorization::v1 as authorization, autoscaling,
        batch::v1 as batch, certificates::v1 as certificates, coordination::v1 as coordination,
        core::v1 as core, discovery::v1 as discovery, events::v1 as events,
        networking::v1 as networking, node::v1 as node, policy::v1 as policy, rbac::v1 as rbac,
        scheduling::v1 as scheduling, storage::v1 as storage,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions,
    apimachinery::pkg::apis::meta::v1 as meta,
    kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// A kind and the function that adds its schema to a generator.
pub(crate) struct Root {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    /// The kind of its lists, where it has any.
    pub(crate) list_kind: Option<&'static str>,
    pub(crate) add: fn(&mut SchemaGenerator) -> Schema,
}

/// A kind that is kept and listed.
const fn kept<T: ListableResource + JsonSchema>() -> Root {
    Root {
        list_kind: Some(T::LIST_KIND),
        ..sent::<T>()
    }
}

/// A kind that is only ever sent, never listed.
const fn sent<T: Resource + JsonSchema>() -> Root {
    Root {
        group: T::GROUP,
        version: T::VERSION,
        kind: T::KIND,
        list_kind: None,
        add: SchemaGenerator::subschema_for::<T>,
    }
}

/// Types that belong to no group, used by every one.
pub(crate) static SHARED: &[fn(&mut SchemaGenerator) -> Schema] = &[
    SchemaGenerator::subschema_for::<meta::APIGroup>,
    SchemaGenerator::subschema_for::<meta::APIGroupList>,
    SchemaGenerator::subschema_for::<meta::APIResourceList>,
    SchemaGenerator::subschema_for::<meta::APIVersions>,
    SchemaGenerator::subschema_for::<meta::DeleteOptions>,
    SchemaGenerator::subschema_for::<meta::ListMeta>,
    SchemaGenerator::subschema_for::<meta::Patch>,
    SchemaGenerator::subschema_for::<meta::Status>,
    SchemaGenerator::subschema_for::<meta::WatchEvent<core::Pod>>,
];

/// Every kind with a group of its own. A new kind is one line.
pub(crate) static ROOTS: &[Root] = &[
    sent::<core::Binding>(),
    kept::<core::ComponentStatus>(),
    kept::<core::ConfigMap>(),
    kept::<core::Endpoints>(),
    kept::<core::Event>(),
    kept::<core::LimitRange>(),
    kept::<core::Namespace>(),
    kept::<core::Node>(),
    kept::<core::PersistentVolume>(),
    kept::<core::PersistentVolumeClaim>(),
    kept::<core::Pod>(),
    kept::<core::PodTemplate>(),
    kept::<core::ReplicationController>(),
    kept::<core::ResourceQuota>(),
    kept::<core::Secret>(),
    kept::<core::Service>(),
    kept::<core::ServiceAccount>(),
    kept::<admissionregistration::MutatingWebhookConfiguration>(),
    kept::<admissionregistration::ValidatingAdmissionPolicy>(),
    kept::<admissionregistration::ValidatingAdmissionPolicyBinding>(),
    kept::<admissionregistration::ValidatingWebhookConfiguration>(),
    kept::<apiextensions::CustomResourceDefinition>(),
    kept::<apiregistration::APIService>(),
    kept::<apps::ControllerRevision>(),
    kept::<apps::DaemonSet>(),
    kept::<apps::Deployment>(),
    kept::<apps::ReplicaSet>(),
    kept::<apps::StatefulSet>(),
    sent::<authentication::SelfSubjectReview>(),
    sent::<authentication::TokenRequest>(),
    sent::<authentication::TokenReview>(),
    sent::<authorization::LocalSubjectAccessReview>(),
    sent::<authorization::SelfSubjectAccessReview>(),
    sent::<authorization::SelfSubjectRulesReview>(),
    sent::<authorization::SubjectAccessReview>(),
    kept::<autoscaling::v1::HorizontalPodAutoscaler>(),
    sent::<autoscaling::v1::Scale>(),
    kept::<autoscaling::v2::HorizontalPodAutoscaler>(),
    kept::<batch::CronJob>(),
    kept::<batch::Job>(),
    kept::<certificates::CertificateSigningRequest>(),
    kept::<coordination::Lease>(),
    kept::<discovery::EndpointSlice>(),
    kept::<events::Event>(),
    kept::<networking::IPAddress>(),
    kept::<networking::Ingress>(),
    kept::<networking::IngressClass>(),
    kept::<networking::NetworkPolicy>(),
    kept::<networking::ServiceCIDR>(),
    kept::<node::RuntimeClass>(),
    sent::<policy::Eviction>(),
    kept::<policy::PodDisruptionBudget>(),
    kept::<rbac::ClusterRole>(),
    kept::<rbac::ClusterRoleBinding>(),
    kept::<rbac::Role>(),
    kept::<rbac::RoleBinding>(),
    kept::<scheduling::PriorityClass>(),
    kept::<storage::CSIDriver>(),
    kept::<storage::CSINode>(),
    kept::<storage::CSIStorageCapacity>(),
    kept::<storage::StorageClass>(),
    kept::<storage::VolumeAttachment>(),
    kept::<storage::VolumeAttributesClass>(),
];
