//! The kinds: a type for each built-in one, [`BuiltinKind`] for a choice among
//! them at run time, and [`Any`] for all others.

use std::sync::Arc;

use longshore_model::{KindInfo, kind::BUILTIN};

use crate::{cluster::Cluster, error::Error, item::Item, view::View};

/// A kind of object: what a [`View`] is a view of.
///
/// ```
/// use longshore_client::{Kind, kinds::Deployment};
/// assert_eq!(Deployment.info().plural, "deployments");
/// assert_eq!(Deployment.info().api_path(), "/apis/apps/v1");
/// ```
pub trait Kind: Clone + Send + Sync + 'static {
    /// Its type and its place in the API.
    fn info(&self) -> &KindInfo;
}

/// A kind known only at run time: by discovery, or by an object's own words.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::{Kind, kinds::Any};
/// use std::sync::Arc;
///
/// // A word of a user gives the view, and the view the kind's description.
/// let info = cluster.kind("deploy").await?.kind().clone();
/// assert_eq!(info.gvk.kind, "Deployment");
///
/// // The description gives views again, without asking the server.
/// let any = Any::new(Arc::new(info));
/// assert_eq!(any.info().api_path(), "/apis/apps/v1");
/// let deployments = cluster.view_of(any).in_namespace("default")?;
/// assert!(deployments.list().await?.items.is_empty());
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
pub struct Any(pub(crate) Arc<KindInfo>);

impl Any {
    /// A view's kind from its description.
    #[must_use]
    pub fn new(info: Arc<KindInfo>) -> Self {
        Self(info)
    }
}

impl Kind for Any {
    fn info(&self) -> &KindInfo {
        &self.0
    }
}

macro_rules! kinds {
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

        impl crate::blocking::Cluster {
            $(
                #[doc = concat!("The ", stringify!($view), " of all namespaces, if they are in any.")]
                #[must_use]
                pub fn $view(&self) -> crate::blocking::View<$name> {
                    self.view()
                }
            )*
        }
    };
}

kinds! {
    /// A set of configuration values.
    ConfigMap, ConfigMapItem, configmaps;
    /// Addresses behind a Service, in the older form.
    Endpoints, EndpointsItem, endpoints;
    /// Something that happened to an object.
    Event, EventItem, events;
    /// Bounds and defaults of what pods of a namespace may ask for.
    LimitRange, LimitRangeItem, limitranges;
    /// A room for names.
    Namespace, NamespaceItem, namespaces;
    /// A machine.
    Node, NodeItem, nodes;
    /// A piece of storage.
    PersistentVolume, PersistentVolumeItem, persistentvolumes;
    /// A claim to storage.
    PersistentVolumeClaim, PersistentVolumeClaimItem, persistentvolumeclaims;
    /// Containers that run together.
    Pod, PodItem, pods;
    /// A pattern for pods.
    PodTemplate, PodTemplateItem, podtemplates;
    /// So many pods of a pattern, in the older form.
    ReplicationController, ReplicationControllerItem, replicationcontrollers;
    /// What a namespace may use in all.
    ResourceQuota, ResourceQuotaItem, resourcequotas;
    /// Confidential values.
    Secret, SecretItem, secrets;
    /// A stable name for a set of pods.
    Service, ServiceItem, services;
    /// Who a pod is, to the API.
    ServiceAccount, ServiceAccountItem, serviceaccounts;
    /// Webhooks that may change objects before they are stored.
    MutatingWebhookConfiguration, MutatingWebhookConfigurationItem, mutatingwebhookconfigurations;
    /// Webhooks that may refuse objects before they are stored.
    ValidatingWebhookConfiguration, ValidatingWebhookConfigurationItem, validatingwebhookconfigurations;
    /// A kind of one's own.
    CustomResourceDefinition, CustomResourceDefinitionItem, customresourcedefinitions;
    /// A version of a group, and the Service that serves it.
    APIService, APIServiceItem, apiservices;
    /// A past state of a StatefulSet or DaemonSet.
    ControllerRevision, ControllerRevisionItem, controllerrevisions;
    /// A pod on every node.
    DaemonSet, DaemonSetItem, daemonsets;
    /// So many pods of a pattern, rolled over when it changes.
    Deployment, DeploymentItem, deployments;
    /// So many pods of a pattern.
    ReplicaSet, ReplicaSetItem, replicasets;
    /// Pods with names and storage of their own.
    StatefulSet, StatefulSetItem, statefulsets;
    /// How many pods a workload has, by metrics.
    HorizontalPodAutoscaler, HorizontalPodAutoscalerItem, horizontalpodautoscalers;
    /// A Job again and again.
    CronJob, CronJobItem, cronjobs;
    /// Pods that run to completion.
    Job, JobItem, jobs;
    /// A request for a certificate.
    CertificateSigningRequest, CertificateSigningRequestItem, certificatesigningrequests;
    /// Who leads, until when.
    Lease, LeaseItem, leases;
    /// Addresses behind a Service.
    EndpointSlice, EndpointSliceItem, endpointslices;
    /// An address that a Service has taken.
    IPAddress, IPAddressItem, ipaddresses;
    /// Ways into the cluster by host and path.
    Ingress, IngressItem, ingresses;
    /// Which controller serves an Ingress.
    IngressClass, IngressClassItem, ingressclasses;
    /// Who may talk to pods.
    NetworkPolicy, NetworkPolicyItem, networkpolicies;
    /// A range of addresses for Services.
    ServiceCIDR, ServiceCIDRItem, servicecidrs;
    /// A container runtime that pods can name.
    RuntimeClass, RuntimeClassItem, runtimeclasses;
    /// How many pods may be away at a time.
    PodDisruptionBudget, PodDisruptionBudgetItem, poddisruptionbudgets;
    /// Rights, of the whole cluster.
    ClusterRole, ClusterRoleItem, clusterroles;
    /// Who has a role, in the whole cluster.
    ClusterRoleBinding, ClusterRoleBindingItem, clusterrolebindings;
    /// Rights in a namespace.
    Role, RoleItem, roles;
    /// Who has a role in a namespace.
    RoleBinding, RoleBindingItem, rolebindings;
    /// How much a pod matters.
    PriorityClass, PriorityClassItem, priorityclasses;
    /// A driver of storage.
    CSIDriver, CSIDriverItem, csidrivers;
    /// The drivers of storage on a node.
    CSINode, CSINodeItem, csinodes;
    /// How much storage is left where.
    CSIStorageCapacity, CSIStorageCapacityItem, csistoragecapacities;
    /// A sort of storage.
    StorageClass, StorageClassItem, storageclasses;
    /// That a volume is to be attached to a node.
    VolumeAttachment, VolumeAttachmentItem, volumeattachments;
    /// Changeable settings of a volume.
    VolumeAttributesClass, VolumeAttributesClassItem, volumeattributesclasses;
}

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
