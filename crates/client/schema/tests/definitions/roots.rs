//! The kinds that the definitions contain, one line per kind.

use std::borrow::Cow;

use k8s_openapi::{
    ListableResource, Resource,
    api::{
        admissionregistration::v1 as admissionregistration, apps::v1 as apps,
        authentication::v1 as authentication, authorization::v1 as authorization, autoscaling,
        batch::v1 as batch, certificates::v1 as certificates, coordination::v1 as coordination,
        core::v1 as core, discovery::v1 as discovery, events::v1 as events,
        flowcontrol::v1 as flowcontrol, networking::v1 as networking, node::v1 as node,
        policy::v1 as policy, rbac::v1 as rbac, resource::v1 as resource,
        scheduling::v1 as scheduling, storage::v1 as storage,
        storagemigration::v1 as storagemigration,
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
    /// The kind of lists, if there are any.
    pub(crate) list_kind: Option<&'static str>,
    /// The name of the definition.
    pub(crate) name: fn() -> Cow<'static, str>,
    pub(crate) add: fn(&mut SchemaGenerator) -> Schema,
}

/// A kind whose objects are stored and listed.
const fn stored<T: ListableResource + JsonSchema>() -> Root {
    Root {
        list_kind: Some(T::LIST_KIND),
        ..request_only::<T>()
    }
}

/// A kind that is only used in requests and never listed.
const fn request_only<T: Resource + JsonSchema>() -> Root {
    Root {
        group: T::GROUP,
        version: T::VERSION,
        kind: T::KIND,
        list_kind: None,
        name: T::schema_name,
        add: SchemaGenerator::subschema_for::<T>,
    }
}

/// Types that do not belong to a group and are used by all groups.
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

/// All kinds that belong to a group. One line per kind.
pub(crate) static ROOTS: &[Root] = &[
    request_only::<core::Binding>(),
    stored::<core::ComponentStatus>(),
    stored::<core::ConfigMap>(),
    stored::<core::Endpoints>(),
    stored::<core::Event>(),
    stored::<core::LimitRange>(),
    stored::<core::Namespace>(),
    stored::<core::Node>(),
    stored::<core::PersistentVolume>(),
    stored::<core::PersistentVolumeClaim>(),
    stored::<core::Pod>(),
    stored::<core::PodTemplate>(),
    stored::<core::ReplicationController>(),
    stored::<core::ResourceQuota>(),
    stored::<core::Secret>(),
    stored::<core::Service>(),
    stored::<core::ServiceAccount>(),
    stored::<admissionregistration::MutatingAdmissionPolicy>(),
    stored::<admissionregistration::MutatingAdmissionPolicyBinding>(),
    stored::<admissionregistration::MutatingWebhookConfiguration>(),
    stored::<admissionregistration::ValidatingAdmissionPolicy>(),
    stored::<admissionregistration::ValidatingAdmissionPolicyBinding>(),
    stored::<admissionregistration::ValidatingWebhookConfiguration>(),
    stored::<apiextensions::CustomResourceDefinition>(),
    stored::<apiregistration::APIService>(),
    stored::<apps::ControllerRevision>(),
    stored::<apps::DaemonSet>(),
    stored::<apps::Deployment>(),
    stored::<apps::ReplicaSet>(),
    stored::<apps::StatefulSet>(),
    request_only::<authentication::SelfSubjectReview>(),
    request_only::<authentication::TokenRequest>(),
    request_only::<authentication::TokenReview>(),
    request_only::<authorization::LocalSubjectAccessReview>(),
    request_only::<authorization::SelfSubjectAccessReview>(),
    request_only::<authorization::SelfSubjectRulesReview>(),
    request_only::<authorization::SubjectAccessReview>(),
    stored::<autoscaling::v1::HorizontalPodAutoscaler>(),
    request_only::<autoscaling::v1::Scale>(),
    stored::<autoscaling::v2::HorizontalPodAutoscaler>(),
    stored::<batch::CronJob>(),
    stored::<batch::Job>(),
    stored::<certificates::CertificateSigningRequest>(),
    stored::<certificates::ClusterTrustBundle>(),
    stored::<certificates::PodCertificateRequest>(),
    stored::<coordination::Lease>(),
    stored::<discovery::EndpointSlice>(),
    stored::<events::Event>(),
    stored::<flowcontrol::FlowSchema>(),
    stored::<flowcontrol::PriorityLevelConfiguration>(),
    stored::<networking::IPAddress>(),
    stored::<networking::Ingress>(),
    stored::<networking::IngressClass>(),
    stored::<networking::NetworkPolicy>(),
    stored::<networking::ServiceCIDR>(),
    stored::<node::RuntimeClass>(),
    request_only::<policy::Eviction>(),
    stored::<policy::PodDisruptionBudget>(),
    stored::<rbac::ClusterRole>(),
    stored::<rbac::ClusterRoleBinding>(),
    stored::<rbac::Role>(),
    stored::<rbac::RoleBinding>(),
    stored::<resource::DeviceClass>(),
    stored::<resource::DeviceTaintRule>(),
    stored::<resource::ResourceClaim>(),
    stored::<resource::ResourceClaimTemplate>(),
    stored::<resource::ResourceSlice>(),
    stored::<scheduling::PriorityClass>(),
    stored::<storage::CSIDriver>(),
    stored::<storage::CSINode>(),
    stored::<storage::CSIStorageCapacity>(),
    stored::<storage::StorageClass>(),
    stored::<storage::VolumeAttachment>(),
    stored::<storage::VolumeAttributesClass>(),
    stored::<storagemigration::StorageVersionMigration>(),
];
