//! The kinds: a type for each built-in one, [`BuiltinKind`] for a choice among
//! them at run time, and [`Any`] for all others.

use longshore_model::{KindInfo, kind::BUILTIN};

pub use crate::kind::{Any, Kind};
use crate::{cluster::Cluster, error::Error, item::Item, list::List, view::View};

/// Calls a macro with all built-in kinds: of each its documentation, its type, that of
/// its items, that of its lists, and the function of its view.
macro_rules! builtin_kinds {
    ($then:ident) => {
        $then! {
            /// A set of configuration values.
            ConfigMap, ConfigMapItem, ConfigMapList, configmaps;
            /// Addresses behind a Service, in the older form.
            Endpoints, EndpointsItem, EndpointsList, endpoints;
            /// Report of an event about an object.
            Event, EventItem, EventList, events;
            /// Bounds and defaults of what pods of a namespace may ask for.
            LimitRange, LimitRangeItem, LimitRangeList, limitranges;
            /// Scope for resource names.
            Namespace, NamespaceItem, NamespaceList, namespaces;
            /// A worker machine of the cluster.
            Node, NodeItem, NodeList, nodes;
            /// A piece of storage.
            PersistentVolume, PersistentVolumeItem, PersistentVolumeList, persistentvolumes;
            /// A claim to storage.
            PersistentVolumeClaim, PersistentVolumeClaimItem, PersistentVolumeClaimList, persistentvolumeclaims;
            /// Containers that run together.
            Pod, PodItem, PodList, pods;
            /// Template for pods.
            PodTemplate, PodTemplateItem, PodTemplateList, podtemplates;
            /// A number of pods of a template, in the older form.
            ReplicationController, ReplicationControllerItem, ReplicationControllerList, replicationcontrollers;
            /// What a namespace may use in all.
            ResourceQuota, ResourceQuotaItem, ResourceQuotaList, resourcequotas;
            /// Confidential values.
            Secret, SecretItem, SecretList, secrets;
            /// A stable name for a set of pods.
            Service, ServiceItem, ServiceList, services;
            /// Identity of a pod's processes to the API.
            ServiceAccount, ServiceAccountItem, ServiceAccountList, serviceaccounts;
            /// Webhooks that may change objects before they are stored.
            MutatingWebhookConfiguration, MutatingWebhookConfigurationItem, MutatingWebhookConfigurationList, mutatingwebhookconfigurations;
            /// Webhooks that may refuse objects before they are stored.
            ValidatingWebhookConfiguration, ValidatingWebhookConfigurationItem, ValidatingWebhookConfigurationList, validatingwebhookconfigurations;
            /// Definition of a custom kind.
            CustomResourceDefinition, CustomResourceDefinitionItem, CustomResourceDefinitionList, customresourcedefinitions;
            /// A version of a group, and the Service that serves it.
            APIService, APIServiceItem, APIServiceList, apiservices;
            /// A past state of a StatefulSet or DaemonSet.
            ControllerRevision, ControllerRevisionItem, ControllerRevisionList, controllerrevisions;
            /// A pod on every node.
            DaemonSet, DaemonSetItem, DaemonSetList, daemonsets;
            /// A number of pods of a template, rolled out when it changes.
            Deployment, DeploymentItem, DeploymentList, deployments;
            /// A number of pods of a template.
            ReplicaSet, ReplicaSetItem, ReplicaSetList, replicasets;
            /// Pods with names and storage of their own.
            StatefulSet, StatefulSetItem, StatefulSetList, statefulsets;
            /// How many pods a workload has, by metrics.
            HorizontalPodAutoscaler, HorizontalPodAutoscalerItem, HorizontalPodAutoscalerList, horizontalpodautoscalers;
            /// Jobs on a schedule.
            CronJob, CronJobItem, CronJobList, cronjobs;
            /// Pods that run to completion.
            Job, JobItem, JobList, jobs;
            /// A request for a certificate.
            CertificateSigningRequest, CertificateSigningRequestItem, CertificateSigningRequestList, certificatesigningrequests;
            /// Leader election: who holds the lease, until when.
            Lease, LeaseItem, LeaseList, leases;
            /// Addresses behind a Service.
            EndpointSlice, EndpointSliceItem, EndpointSliceList, endpointslices;
            /// An address that a Service has taken.
            IPAddress, IPAddressItem, IPAddressList, ipaddresses;
            /// Ways into the cluster by host and path.
            Ingress, IngressItem, IngressList, ingresses;
            /// Which controller serves an Ingress.
            IngressClass, IngressClassItem, IngressClassList, ingressclasses;
            /// Traffic that pods may receive and send.
            NetworkPolicy, NetworkPolicyItem, NetworkPolicyList, networkpolicies;
            /// A range of addresses for Services.
            ServiceCIDR, ServiceCIDRItem, ServiceCIDRList, servicecidrs;
            /// A container runtime that pods can name.
            RuntimeClass, RuntimeClassItem, RuntimeClassList, runtimeclasses;
            /// How many pods may be disrupted at a time.
            PodDisruptionBudget, PodDisruptionBudgetItem, PodDisruptionBudgetList, poddisruptionbudgets;
            /// Permissions in the whole cluster.
            ClusterRole, ClusterRoleItem, ClusterRoleList, clusterroles;
            /// Subjects of a ClusterRole.
            ClusterRoleBinding, ClusterRoleBindingItem, ClusterRoleBindingList, clusterrolebindings;
            /// Permissions in a namespace.
            Role, RoleItem, RoleList, roles;
            /// Subjects of a role in a namespace.
            RoleBinding, RoleBindingItem, RoleBindingList, rolebindings;
            /// Pod scheduling priority.
            PriorityClass, PriorityClassItem, PriorityClassList, priorityclasses;
            /// A driver of storage.
            CSIDriver, CSIDriverItem, CSIDriverList, csidrivers;
            /// The drivers of storage on a node.
            CSINode, CSINodeItem, CSINodeList, csinodes;
            /// How much storage is left where.
            CSIStorageCapacity, CSIStorageCapacityItem, CSIStorageCapacityList, csistoragecapacities;
            /// Class of storage.
            StorageClass, StorageClassItem, StorageClassList, storageclasses;
            /// That a volume is to be attached to a node.
            VolumeAttachment, VolumeAttachmentItem, VolumeAttachmentList, volumeattachments;
            /// Changeable settings of a volume.
            VolumeAttributesClass, VolumeAttributesClassItem, VolumeAttributesClassList, volumeattributesclasses;
        }
    };
}
pub(crate) use builtin_kinds;

macro_rules! define {
    ($($(#[$doc:meta])* $name:ident, $item:ident, $list:ident, $view:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
            pub struct $name;

            impl Kind for $name {
                fn info(&self) -> &KindInfo {
                    BuiltinKind::$name.known()
                }
            }

            #[doc = concat!("A snapshot of one ", stringify!($name), ".")]
            pub type $item = Item<$name>;

            #[doc = concat!("A list of ", stringify!($item), "s.")]
            pub type $list = List<$name>;
        )*

        /// A built-in kind, chosen at run time. Its text is its name. It is a
        /// [`Kind`], so a view can be made of it.
        ///
        /// ```
        /// use longshore_client::kinds::BuiltinKind;
        /// let kind: BuiltinKind = "DaemonSet".parse()?;
        /// assert_eq!(kind, BuiltinKind::DaemonSet);
        /// assert_eq!(kind.to_string(), "DaemonSet");
        /// assert!("Shoe".parse::<BuiltinKind>().is_err());
        ///
        /// // The kind of a list means the kind of its items.
        /// assert_eq!("DaemonSetList".parse::<BuiltinKind>()?, kind);
        /// assert_eq!(kind.list_kind(), "DaemonSetList");
        /// # Ok::<(), longshore_client::Error>(())
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
    /// A test holds the kinds here in the order of the table.
    fn known(self) -> &'static KindInfo {
        &BUILTIN[self as usize]
    }
}

impl Kind for BuiltinKind {
    fn info(&self) -> &KindInfo {
        self.known()
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
        let here: Vec<&KindInfo> = BuiltinKind::ALL.iter().map(|kind| kind.known()).collect();
        let there: Vec<&KindInfo> = BUILTIN.iter().collect();
        assert_eq!(here, there);
        for kind in BuiltinKind::ALL {
            assert_eq!(kind.list_kind(), kind.known().list_kind());
        }
    }
}
