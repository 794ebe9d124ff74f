//! The kinds: the Rust type of each built-in kind, which is k8s-openapi's; [`BuiltinKind`]
//! to select one at run time, and [`Any`] for all others.

use longshore_model::{KindInfo, kind::BUILTIN};

pub use crate::kind::{Any, Kind};
use crate::{cluster::Cluster, error::Error, item::Item, kind::KindRef, list::List, view::View};

/// Calls a macro with all built-in kinds. Each has its documentation, its module in
/// k8s-openapi, its type, the types of its items and lists, and the function of its view.
macro_rules! builtin_kinds {
    ($then:ident) => {
        $then! {
            /// Configuration values.
            api::core::v1, ConfigMap, ConfigMapItem, ConfigMapList, configmaps;
            /// Addresses behind a Service, in the old form.
            api::core::v1, Endpoints, EndpointsItem, EndpointsList, endpoints;
            /// Report of an event about an object.
            api::core::v1, Event, EventItem, EventList, events;
            /// Limits and defaults of the resources of pods in a namespace.
            api::core::v1, LimitRange, LimitRangeItem, LimitRangeList, limitranges;
            /// Scope for resource names.
            api::core::v1, Namespace, NamespaceItem, NamespaceList, namespaces;
            /// A worker machine of the cluster.
            api::core::v1, Node, NodeItem, NodeList, nodes;
            /// A storage volume.
            api::core::v1, PersistentVolume, PersistentVolumeItem, PersistentVolumeList, persistentvolumes;
            /// A request for storage.
            api::core::v1, PersistentVolumeClaim, PersistentVolumeClaimItem, PersistentVolumeClaimList, persistentvolumeclaims;
            /// Containers that run together.
            api::core::v1, Pod, PodItem, PodList, pods;
            /// Template for pods.
            api::core::v1, PodTemplate, PodTemplateItem, PodTemplateList, podtemplates;
            /// Pods of one template, in the old form.
            api::core::v1, ReplicationController, ReplicationControllerItem, ReplicationControllerList, replicationcontrollers;
            /// Limits of the total resources of a namespace.
            api::core::v1, ResourceQuota, ResourceQuotaItem, ResourceQuotaList, resourcequotas;
            /// Confidential values.
            api::core::v1, Secret, SecretItem, SecretList, secrets;
            /// A stable name for a set of pods.
            api::core::v1, Service, ServiceItem, ServiceList, services;
            /// Identity of a pod's processes for the API.
            api::core::v1, ServiceAccount, ServiceAccountItem, ServiceAccountList, serviceaccounts;
            /// Expressions that change objects before they are stored.
            api::admissionregistration::v1, MutatingAdmissionPolicy, MutatingAdmissionPolicyItem, MutatingAdmissionPolicyList, mutatingadmissionpolicies;
            /// Puts a MutatingAdmissionPolicy into effect.
            api::admissionregistration::v1, MutatingAdmissionPolicyBinding, MutatingAdmissionPolicyBindingItem, MutatingAdmissionPolicyBindingList, mutatingadmissionpolicybindings;
            /// Webhooks that may change objects before they are stored.
            api::admissionregistration::v1, MutatingWebhookConfiguration, MutatingWebhookConfigurationItem, MutatingWebhookConfigurationList, mutatingwebhookconfigurations;
            /// Expressions that objects must satisfy before they are stored.
            api::admissionregistration::v1, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyItem, ValidatingAdmissionPolicyList, validatingadmissionpolicies;
            /// Puts a ValidatingAdmissionPolicy into effect.
            api::admissionregistration::v1, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingItem, ValidatingAdmissionPolicyBindingList, validatingadmissionpolicybindings;
            /// Webhooks that may reject objects before they are stored.
            api::admissionregistration::v1, ValidatingWebhookConfiguration, ValidatingWebhookConfigurationItem, ValidatingWebhookConfigurationList, validatingwebhookconfigurations;
            /// Definition of a custom kind.
            apiextensions_apiserver::pkg::apis::apiextensions::v1, CustomResourceDefinition, CustomResourceDefinitionItem, CustomResourceDefinitionList, customresourcedefinitions;
            /// A version of an API group, and the Service that serves it.
            kube_aggregator::pkg::apis::apiregistration::v1, APIService, APIServiceItem, APIServiceList, apiservices;
            /// An earlier version of a StatefulSet or DaemonSet.
            api::apps::v1, ControllerRevision, ControllerRevisionItem, ControllerRevisionList, controllerrevisions;
            /// A pod on each node.
            api::apps::v1, DaemonSet, DaemonSetItem, DaemonSetList, daemonsets;
            /// Replicated pods of a template, with rolling updates.
            api::apps::v1, Deployment, DeploymentItem, DeploymentList, deployments;
            /// Replicated pods of a template.
            api::apps::v1, ReplicaSet, ReplicaSetItem, ReplicaSetList, replicasets;
            /// Pods with stable names and storage.
            api::apps::v1, StatefulSet, StatefulSetItem, StatefulSetList, statefulsets;
            /// Automatic scaling of a workload by metrics.
            api::autoscaling::v2, HorizontalPodAutoscaler, HorizontalPodAutoscalerItem, HorizontalPodAutoscalerList, horizontalpodautoscalers;
            /// Jobs on a schedule.
            api::batch::v1, CronJob, CronJobItem, CronJobList, cronjobs;
            /// Pods that run to completion.
            api::batch::v1, Job, JobItem, JobList, jobs;
            /// A request for a certificate.
            api::certificates::v1, CertificateSigningRequest, CertificateSigningRequestItem, CertificateSigningRequestList, certificatesigningrequests;
            /// Certificates of authorities.
            api::certificates::v1, ClusterTrustBundle, ClusterTrustBundleItem, ClusterTrustBundleList, clustertrustbundles;
            /// A node's request for a certificate of a pod.
            api::certificates::v1, PodCertificateRequest, PodCertificateRequestItem, PodCertificateRequestList, podcertificaterequests;
            /// A lease, for leader election.
            api::coordination::v1, Lease, LeaseItem, LeaseList, leases;
            /// Addresses behind a Service.
            api::discovery::v1, EndpointSlice, EndpointSliceItem, EndpointSliceList, endpointslices;
            /// Assignment of requests to priority levels.
            api::flowcontrol::v1, FlowSchema, FlowSchemaItem, FlowSchemaList, flowschemas;
            /// A level of priority: its limit of concurrent requests on the API server.
            api::flowcontrol::v1, PriorityLevelConfiguration, PriorityLevelConfigurationItem, PriorityLevelConfigurationList, prioritylevelconfigurations;
            /// An IP address that a Service uses.
            api::networking::v1, IPAddress, IPAddressItem, IPAddressList, ipaddresses;
            /// HTTP routes into the cluster by host and path.
            api::networking::v1, Ingress, IngressItem, IngressList, ingresses;
            /// The controller of an Ingress.
            api::networking::v1, IngressClass, IngressClassItem, IngressClassList, ingressclasses;
            /// Traffic that pods may receive and send.
            api::networking::v1, NetworkPolicy, NetworkPolicyItem, NetworkPolicyList, networkpolicies;
            /// A range of IP addresses for Services.
            api::networking::v1, ServiceCIDR, ServiceCIDRItem, ServiceCIDRList, servicecidrs;
            /// A container runtime that pods can select.
            api::node::v1, RuntimeClass, RuntimeClassItem, RuntimeClassList, runtimeclasses;
            /// A limit of concurrent disruptions of pods.
            api::policy::v1, PodDisruptionBudget, PodDisruptionBudgetItem, PodDisruptionBudgetList, poddisruptionbudgets;
            /// Permissions in the whole cluster.
            api::rbac::v1, ClusterRole, ClusterRoleItem, ClusterRoleList, clusterroles;
            /// Subjects of a ClusterRole.
            api::rbac::v1, ClusterRoleBinding, ClusterRoleBindingItem, ClusterRoleBindingList, clusterrolebindings;
            /// Permissions in a namespace.
            api::rbac::v1, Role, RoleItem, RoleList, roles;
            /// Subjects of a role in a namespace.
            api::rbac::v1, RoleBinding, RoleBindingItem, RoleBindingList, rolebindings;
            /// A class of devices that pods can claim.
            api::resource::v1, DeviceClass, DeviceClassItem, DeviceClassList, deviceclasses;
            /// Adds a taint to devices.
            api::resource::v1, DeviceTaintRule, DeviceTaintRuleItem, DeviceTaintRuleList, devicetaintrules;
            /// A request for devices.
            api::resource::v1, ResourceClaim, ResourceClaimItem, ResourceClaimList, resourceclaims;
            /// Template for ResourceClaims of pods.
            api::resource::v1, ResourceClaimTemplate, ResourceClaimTemplateItem, ResourceClaimTemplateList, resourceclaimtemplates;
            /// Devices that a driver offers.
            api::resource::v1, ResourceSlice, ResourceSliceItem, ResourceSliceList, resourceslices;
            /// Pod scheduling priority.
            api::scheduling::v1, PriorityClass, PriorityClassItem, PriorityClassList, priorityclasses;
            /// A storage driver.
            api::storage::v1, CSIDriver, CSIDriverItem, CSIDriverList, csidrivers;
            /// The storage drivers of a node.
            api::storage::v1, CSINode, CSINodeItem, CSINodeList, csinodes;
            /// The available storage capacity.
            api::storage::v1, CSIStorageCapacity, CSIStorageCapacityItem, CSIStorageCapacityList, csistoragecapacities;
            /// A class of storage.
            api::storage::v1, StorageClass, StorageClassItem, StorageClassList, storageclasses;
            /// The intent to attach a volume to a node.
            api::storage::v1, VolumeAttachment, VolumeAttachmentItem, VolumeAttachmentList, volumeattachments;
            /// A class of mutable volume settings.
            api::storage::v1, VolumeAttributesClass, VolumeAttributesClassItem, VolumeAttributesClassList, volumeattributesclasses;
            /// A migration of stored objects to the storage version of their resource.
            api::storagemigration::v1, StorageVersionMigration, StorageVersionMigrationItem, StorageVersionMigrationList, storageversionmigrations;
        }
    };
}
pub(crate) use builtin_kinds;

macro_rules! define {
    ($($(#[$doc:meta])* $($module:ident)::+, $name:ident, $item:ident, $list:ident, $view:ident;)*) => {
        $(
            $(#[$doc])*
            pub use k8s_openapi::$($module)::+::$name;

            #[doc = concat!("A snapshot of one ", stringify!($name), ".")]
            pub type $item = Item<$name>;

            #[doc = concat!("A list of ", stringify!($item), "s.")]
            pub type $list = List<$name>;
        )*

        /// A built-in kind, selected at run time. Its text is its name.
        ///
        /// ```
        /// # longshore_embedded::example(async |cluster| {
        /// use longshore_client::kinds::BuiltinKind;
        /// let kind: BuiltinKind = "DaemonSet".parse()?;
        /// assert_eq!(kind, BuiltinKind::DaemonSet);
        /// assert_eq!(kind.to_string(), "DaemonSet");
        /// assert!("Shoe".parse::<BuiltinKind>().is_err());
        ///
        /// // The kind of a list selects the kind of its items.
        /// assert_eq!("DaemonSetList".parse::<BuiltinKind>()?, kind);
        /// assert_eq!(kind.list_kind(), "DaemonSetList");
        /// assert_eq!(kind.info().plural, "daemonsets");
        ///
        /// // A view of the kind, with items as JSON.
        /// let view = cluster.view_of::<longshore_client::kinds::Any>(kind);
        /// assert!(view.list().await?.items.is_empty());
        /// # Ok(()) });
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum BuiltinKind {
            $($(#[$doc])* $name,)*
        }

        impl BuiltinKind {
            /// All built-in kinds.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name, as in an object's `kind`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The kind of its lists, for example `PodList`.
            #[must_use]
            pub fn list_kind(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($list),)*
                }
            }
        }

        impl Cluster {
            $(
                #[doc = concat!("The ", stringify!($view), " of all namespaces, if they are in any.")]
                #[must_use]
                pub fn $view(&self) -> View<$name> {
                    self.view()
                }
            )*
        }
    };
}

builtin_kinds!(define);

impl BuiltinKind {
    /// The kind and its place in the API.
    #[must_use]
    pub fn info(self) -> &'static KindInfo {
        // The table has the same order as this enum; a test checks this.
        &BUILTIN[self as usize]
    }
}

impl From<BuiltinKind> for KindRef {
    fn from(kind: BuiltinKind) -> Self {
        kind.info().into()
    }
}

impl std::fmt::Display for BuiltinKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for BuiltinKind {
    type Err = Error;

    /// Parses the name of a kind, or of the kind of its lists.
    ///
    /// [`Error::Invalid`] if the kind is not built-in.
    fn from_str(name: &str) -> Result<Self, Error> {
        let is_called = |kind: &&Self| kind.as_str() == name || kind.list_kind() == name;
        let found = Self::ALL.iter().find(is_called);
        found.copied().ok_or_else(|| {
            Error::Invalid(format!(
                "{name:?} is not a built-in kind: write it as Pod; Cluster::kind() finds custom ones"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_are_those_of_the_table() {
        let here: Vec<&KindInfo> = BuiltinKind::ALL.iter().map(|kind| kind.info()).collect();
        let there: Vec<&KindInfo> = BUILTIN.iter().collect();
        assert_eq!(here, there);
        for kind in BuiltinKind::ALL {
            assert_eq!(kind.list_kind(), kind.info().list_kind());
        }
    }

    #[test]
    fn the_types_are_of_the_kinds_of_the_table() {
        macro_rules! infos {
            ($($(#[$doc:meta])* $($module:ident)::+, $name:ident, $item:ident, $list:ident, $view:ident;)*) => {
                [$((BuiltinKind::$name, $name::info()),)*]
            };
        }
        for (kind, info) in builtin_kinds!(infos) {
            assert!(std::ptr::eq(kind.info(), &*info), "{kind}");
        }
    }
}
