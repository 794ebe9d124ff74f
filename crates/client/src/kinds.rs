//! The kinds: for each built-in one the type of its objects, which is k8s-openapi's;
//! [`BuiltinKind`] for a choice among them at run time, and [`Any`] for all others.

use longshore_model::{KindInfo, kind::BUILTIN};

pub use crate::kind::{Any, Kind};
use crate::{cluster::Cluster, error::Error, item::Item, kind::KindRef, list::List, view::View};

/// Calls a macro with all built-in kinds: of each its documentation, its module in
/// k8s-openapi, its type, that of its items, that of its lists, and the function of its
/// view.
macro_rules! builtin_kinds {
    ($then:ident) => {
        $then! {
            /// A set of configuration values.
            api::core::v1, ConfigMap, ConfigMapItem, ConfigMapList, configmaps;
            /// Addresses behind a Service, in the older form.
            api::core::v1, Endpoints, EndpointsItem, EndpointsList, endpoints;
            /// Report of an event about an object.
            api::core::v1, Event, EventItem, EventList, events;
            /// Bounds and defaults of what pods of a namespace may ask for.
            api::core::v1, LimitRange, LimitRangeItem, LimitRangeList, limitranges;
            /// Scope for resource names.
            api::core::v1, Namespace, NamespaceItem, NamespaceList, namespaces;
            /// A worker machine of the cluster.
            api::core::v1, Node, NodeItem, NodeList, nodes;
            /// A piece of storage.
            api::core::v1, PersistentVolume, PersistentVolumeItem, PersistentVolumeList, persistentvolumes;
            /// A claim to storage.
            api::core::v1, PersistentVolumeClaim, PersistentVolumeClaimItem, PersistentVolumeClaimList, persistentvolumeclaims;
            /// Containers that run together.
            api::core::v1, Pod, PodItem, PodList, pods;
            /// Template for pods.
            api::core::v1, PodTemplate, PodTemplateItem, PodTemplateList, podtemplates;
            /// A number of pods of a template, in the older form.
            api::core::v1, ReplicationController, ReplicationControllerItem, ReplicationControllerList, replicationcontrollers;
            /// What a namespace may use in all.
            api::core::v1, ResourceQuota, ResourceQuotaItem, ResourceQuotaList, resourcequotas;
            /// Confidential values.
            api::core::v1, Secret, SecretItem, SecretList, secrets;
            /// A stable name for a set of pods.
            api::core::v1, Service, ServiceItem, ServiceList, services;
            /// Identity of a pod's processes to the API.
            api::core::v1, ServiceAccount, ServiceAccountItem, ServiceAccountList, serviceaccounts;
            /// Webhooks that may change objects before they are stored.
            api::admissionregistration::v1, MutatingWebhookConfiguration, MutatingWebhookConfigurationItem, MutatingWebhookConfigurationList, mutatingwebhookconfigurations;
            /// Webhooks that may refuse objects before they are stored.
            api::admissionregistration::v1, ValidatingWebhookConfiguration, ValidatingWebhookConfigurationItem, ValidatingWebhookConfigurationList, validatingwebhookconfigurations;
            /// Definition of a custom kind.
            apiextensions_apiserver::pkg::apis::apiextensions::v1, CustomResourceDefinition, CustomResourceDefinitionItem, CustomResourceDefinitionList, customresourcedefinitions;
            /// A version of a group, and the Service that serves it.
            kube_aggregator::pkg::apis::apiregistration::v1, APIService, APIServiceItem, APIServiceList, apiservices;
            /// A past state of a StatefulSet or DaemonSet.
            api::apps::v1, ControllerRevision, ControllerRevisionItem, ControllerRevisionList, controllerrevisions;
            /// A pod on every node.
            api::apps::v1, DaemonSet, DaemonSetItem, DaemonSetList, daemonsets;
            /// A number of pods of a template, rolled out when it changes.
            api::apps::v1, Deployment, DeploymentItem, DeploymentList, deployments;
            /// A number of pods of a template.
            api::apps::v1, ReplicaSet, ReplicaSetItem, ReplicaSetList, replicasets;
            /// Pods with names and storage of their own.
            api::apps::v1, StatefulSet, StatefulSetItem, StatefulSetList, statefulsets;
            /// How many pods a workload has, by metrics.
            api::autoscaling::v2, HorizontalPodAutoscaler, HorizontalPodAutoscalerItem, HorizontalPodAutoscalerList, horizontalpodautoscalers;
            /// Jobs on a schedule.
            api::batch::v1, CronJob, CronJobItem, CronJobList, cronjobs;
            /// Pods that run to completion.
            api::batch::v1, Job, JobItem, JobList, jobs;
            /// A request for a certificate.
            api::certificates::v1, CertificateSigningRequest, CertificateSigningRequestItem, CertificateSigningRequestList, certificatesigningrequests;
            /// Leader election: who holds the lease, until when.
            api::coordination::v1, Lease, LeaseItem, LeaseList, leases;
            /// Addresses behind a Service.
            api::discovery::v1, EndpointSlice, EndpointSliceItem, EndpointSliceList, endpointslices;
            /// An address that a Service has taken.
            api::networking::v1, IPAddress, IPAddressItem, IPAddressList, ipaddresses;
            /// Ways into the cluster by host and path.
            api::networking::v1, Ingress, IngressItem, IngressList, ingresses;
            /// Which controller serves an Ingress.
            api::networking::v1, IngressClass, IngressClassItem, IngressClassList, ingressclasses;
            /// Traffic that pods may receive and send.
            api::networking::v1, NetworkPolicy, NetworkPolicyItem, NetworkPolicyList, networkpolicies;
            /// A range of addresses for Services.
            api::networking::v1, ServiceCIDR, ServiceCIDRItem, ServiceCIDRList, servicecidrs;
            /// A container runtime that pods can name.
            api::node::v1, RuntimeClass, RuntimeClassItem, RuntimeClassList, runtimeclasses;
            /// How many pods may be disrupted at a time.
            api::policy::v1, PodDisruptionBudget, PodDisruptionBudgetItem, PodDisruptionBudgetList, poddisruptionbudgets;
            /// Permissions in the whole cluster.
            api::rbac::v1, ClusterRole, ClusterRoleItem, ClusterRoleList, clusterroles;
            /// Subjects of a ClusterRole.
            api::rbac::v1, ClusterRoleBinding, ClusterRoleBindingItem, ClusterRoleBindingList, clusterrolebindings;
            /// Permissions in a namespace.
            api::rbac::v1, Role, RoleItem, RoleList, roles;
            /// Subjects of a role in a namespace.
            api::rbac::v1, RoleBinding, RoleBindingItem, RoleBindingList, rolebindings;
            /// Pod scheduling priority.
            api::scheduling::v1, PriorityClass, PriorityClassItem, PriorityClassList, priorityclasses;
            /// A driver of storage.
            api::storage::v1, CSIDriver, CSIDriverItem, CSIDriverList, csidrivers;
            /// The drivers of storage on a node.
            api::storage::v1, CSINode, CSINodeItem, CSINodeList, csinodes;
            /// How much storage is left where.
            api::storage::v1, CSIStorageCapacity, CSIStorageCapacityItem, CSIStorageCapacityList, csistoragecapacities;
            /// Class of storage.
            api::storage::v1, StorageClass, StorageClassItem, StorageClassList, storageclasses;
            /// That a volume is to be attached to a node.
            api::storage::v1, VolumeAttachment, VolumeAttachmentItem, VolumeAttachmentList, volumeattachments;
            /// Changeable settings of a volume.
            api::storage::v1, VolumeAttributesClass, VolumeAttributesClassItem, VolumeAttributesClassList, volumeattributesclasses;
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

        /// A built-in kind, chosen at run time. Its text is its name.
        ///
        /// ```
        /// # longshore_embedded::example(async |cluster| {
        /// use longshore_client::kinds::BuiltinKind;
        /// let kind: BuiltinKind = "DaemonSet".parse()?;
        /// assert_eq!(kind, BuiltinKind::DaemonSet);
        /// assert_eq!(kind.to_string(), "DaemonSet");
        /// assert!("Shoe".parse::<BuiltinKind>().is_err());
        ///
        /// // The kind of a list means the kind of its items.
        /// assert_eq!("DaemonSetList".parse::<BuiltinKind>()?, kind);
        /// assert_eq!(kind.list_kind(), "DaemonSetList");
        /// assert_eq!(kind.info().plural, "daemonsets");
        ///
        /// // A view of the kind; its items are read as JSON.
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
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name, as in an object's `kind`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The kind of its lists, as in `PodList`.
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
    /// Its type and its place in the API.
    #[must_use]
    pub fn info(self) -> &'static KindInfo {
        // A test compares the order of the kinds with that of the table.
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

    /// Reads the name of a kind, or of the kind of its lists.
    ///
    /// [`Error::Invalid`] for what is no built-in kind.
    fn from_str(name: &str) -> Result<Self, Error> {
        let is_called = |kind: &&Self| kind.as_str() == name || kind.list_kind() == name;
        let found = Self::ALL.iter().find(is_called);
        found.copied().ok_or_else(|| {
            Error::Invalid(format!(
                "{name:?} is no built-in kind: write it as Pod; Cluster::kind() finds custom ones"
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
