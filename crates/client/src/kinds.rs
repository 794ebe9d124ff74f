//! The kinds: a type for each built-in one, [`BuiltinKind`] for a choice among
//! them at run time, and [`Any`] for all others.

use longshore_model::{KindInfo, kind::BUILTIN};

pub use crate::kind::{Any, Kind};
use crate::{cluster::Cluster, error::Error, item::Item, view::View};

/// Calls a macro with all built-in kinds: of each its documentation, its type, that
/// of its items, and the function of its view.
macro_rules! builtin_kinds {
    ($then:ident) => {
        $then! {
            /// A set of configuration values.
            ConfigMap, ConfigMapItem, configmaps;
            /// Addresses behind a Service, in the older form.
            Endpoints, EndpointsItem, endpoints;
            /// Report of an event about an object.
            Event, EventItem, events;
            /// Bounds and defaults of what pods of a namespace may ask for.
            LimitRange, LimitRangeItem, limitranges;
            /// Scope for resource names.
            Namespace, NamespaceItem, namespaces;
            /// A worker machine of the cluster.
            Node, NodeItem, nodes;
            /// A piece of storage.
            PersistentVolume, PersistentVolumeItem, persistentvolumes;
            /// A claim to storage.
            PersistentVolumeClaim, PersistentVolumeClaimItem, persistentvolumeclaims;
            /// Containers that run together.
            Pod, PodItem, pods;
            /// Template for pods.
            PodTemplate, PodTemplateItem, podtemplates;
            /// A number of pods of a template, in the older form.
            ReplicationController, ReplicationControllerItem, replicationcontrollers;
            /// What a namespace may use in all.
            ResourceQuota, ResourceQuotaItem, resourcequotas;
            /// Confidential values.
            Secret, SecretItem, secrets;
            /// A stable name for a set of pods.
            Service, ServiceItem, services;
            /// Identity of a pod's processes to the API.
            ServiceAccount, ServiceAccountItem, serviceaccounts;
            /// Webhooks that may change objects before they are stored.
            MutatingWebhookConfiguration, MutatingWebhookConfigurationItem, mutatingwebhookconfigurations;
            /// Webhooks that may refuse objects before they are stored.
            ValidatingWebhookConfiguration, ValidatingWebhookConfigurationItem, validatingwebhookconfigurations;
            /// Definition of a custom kind.
            CustomResourceDefinition, CustomResourceDefinitionItem, customresourcedefinitions;
            /// A version of a group, and the Service that serves it.
            APIService, APIServiceItem, apiservices;
            /// A past state of a StatefulSet or DaemonSet.
            ControllerRevision, ControllerRevisionItem, controllerrevisions;
            /// A pod on every node.
            DaemonSet, DaemonSetItem, daemonsets;
            /// A number of pods of a template, rolled out when it changes.
            Deployment, DeploymentItem, deployments;
            /// A number of pods of a template.
            ReplicaSet, ReplicaSetItem, replicasets;
            /// Pods with names and storage of their own.
            StatefulSet, StatefulSetItem, statefulsets;
            /// How many pods a workload has, by metrics.
            HorizontalPodAutoscaler, HorizontalPodAutoscalerItem, horizontalpodautoscalers;
            /// Jobs on a schedule.
            CronJob, CronJobItem, cronjobs;
            /// Pods that run to completion.
            Job, JobItem, jobs;
            /// A request for a certificate.
            CertificateSigningRequest, CertificateSigningRequestItem, certificatesigningrequests;
            /// Leader election: who holds the lease, until when.
            Lease, LeaseItem, leases;
            /// Addresses behind a Service.
            EndpointSlice, EndpointSliceItem, endpointslices;
            /// An address that a Service has taken.
            IPAddress, IPAddressItem, ipaddresses;
            /// Ways into the cluster by host and path.
            Ingress, IngressItem, ingresses;
            /// Which controller serves an Ingress.
            IngressClass, IngressClassItem, ingressclasses;
            /// Traffic that pods may receive and send.
            NetworkPolicy, NetworkPolicyItem, networkpolicies;
            /// A range of addresses for Services.
            ServiceCIDR, ServiceCIDRItem, servicecidrs;
            /// A container runtime that pods can name.
            RuntimeClass, RuntimeClassItem, runtimeclasses;
            /// How many pods may be disrupted at a time.
            PodDisruptionBudget, PodDisruptionBudgetItem, poddisruptionbudgets;
            /// Permissions in the whole cluster.
            ClusterRole, ClusterRoleItem, clusterroles;
            /// Subjects of a ClusterRole.
            ClusterRoleBinding, ClusterRoleBindingItem, clusterrolebindings;
            /// Permissions in a namespace.
            Role, RoleItem, roles;
            /// Subjects of a role in a namespace.
            RoleBinding, RoleBindingItem, rolebindings;
            /// Pod scheduling priority.
            PriorityClass, PriorityClassItem, priorityclasses;
            /// A driver of storage.
            CSIDriver, CSIDriverItem, csidrivers;
            /// The drivers of storage on a node.
            CSINode, CSINodeItem, csinodes;
            /// How much storage is left where.
            CSIStorageCapacity, CSIStorageCapacityItem, csistoragecapacities;
            /// Class of storage.
            StorageClass, StorageClassItem, storageclasses;
            /// That a volume is to be attached to a node.
            VolumeAttachment, VolumeAttachmentItem, volumeattachments;
            /// Changeable settings of a volume.
            VolumeAttributesClass, VolumeAttributesClassItem, volumeattributesclasses;
        }
    };
}
pub(crate) use builtin_kinds;

macro_rules! define {
    ($($(#[$doc:meta])* $name:ident, $item:ident, $view:ident;)*) => {
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

    /// [`Error::Invalid`] for what is no built-in kind.
    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.iter().find(|kind| kind.as_str() == name);
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
    }
}
