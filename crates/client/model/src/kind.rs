//! Kinds: the type of an object, its position in the API and its display names.
//! [`BUILTIN`] is the table of the kinds that the embedded cluster serves and
//! for which the client has views.

use std::{borrow::Cow, fmt, sync::Arc};

type Text = Cow<'static, str>;

/// Group, version and kind: the type of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gvk {
    /// The API group; empty for the core group.
    pub group: Text,
    /// The version within the group, such as `v1`.
    pub version: Text,
    /// The kind, such as `Pod`.
    pub kind: Text,
}

impl Gvk {
    /// Creates a GVK from the `apiVersion` and `kind` of an object.
    ///
    /// ```
    /// let gvk = longshore_model::Gvk::from_api_version("batch/v1", "Job");
    /// assert_eq!((gvk.group.as_ref(), gvk.version.as_ref()), ("batch", "v1"));
    /// ```
    #[must_use]
    pub fn from_api_version(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: Text::Owned(group.to_owned()),
            version: Text::Owned(version.to_owned()),
            kind: Text::Owned(kind.to_owned()),
        }
    }

    /// `group/version`, or `version` for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        join_api_version(&self.group, &self.version)
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version(), self.kind)
    }
}

fn join_api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// A list of words, either static (the table of built-in kinds) or created at
/// run time.
///
/// ```
/// let words: longshore_model::kind::Words = ["po".to_owned()].into_iter().collect();
/// assert!(words.contains("po") && words.iter().eq(["po"]));
/// ```
#[derive(Debug, Clone)]
pub struct Words(Inner);

#[derive(Debug, Clone)]
enum Inner {
    Table(&'static [&'static str]),
    Own(Arc<[String]>),
}

impl Words {
    /// The words in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let (table, own): (&[&str], &[String]) = match &self.0 {
            Inner::Table(words) => (words, &[]),
            Inner::Own(words) => (&[], words),
        };
        table.iter().copied().chain(own.iter().map(String::as_str))
    }

    /// Returns true if the list contains `word`.
    #[must_use]
    pub fn contains(&self, word: &str) -> bool {
        self.iter().any(|own| own == word)
    }

    /// Returns true if the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl Default for Words {
    fn default() -> Self {
        Self(Inner::Table(&[]))
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Words {}

impl FromIterator<String> for Words {
    fn from_iter<I: IntoIterator<Item = String>>(words: I) -> Self {
        Self(Inner::Own(words.into_iter().collect()))
    }
}

/// The scope of a kind: namespaced or cluster-scoped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Objects are in a namespace.
    Namespaced,
    /// Objects belong to the whole cluster.
    Cluster,
}

/// A kind and its position in the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindInfo {
    /// The type.
    pub gvk: Gvk,
    /// The resource name in paths: `pods`.
    pub plural: Text,
    /// The singular display name: `pod`.
    pub singular: Text,
    /// Short names: `po`.
    pub short_names: Words,
    /// Categories: `all`.
    pub categories: Words,
    /// Namespaced or cluster-scoped.
    pub scope: Scope,
    /// The served subresources: `status`, `log`, …
    pub subresources: Words,
    /// The kind of lists, if it is not `<Kind>List`.
    pub list_kind: Option<Text>,
}

impl KindInfo {
    /// `group/version`, or `version` for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        self.gvk.api_version()
    }

    /// The resource name in messages: `pods` or `jobs.batch`.
    #[must_use]
    pub fn qualified(&self) -> String {
        if self.gvk.group.is_empty() {
            self.plural.to_string()
        } else {
            format!("{}.{}", self.plural, self.gvk.group)
        }
    }

    /// The kind of lists: `PodList`.
    #[must_use]
    pub fn list_kind(&self) -> Text {
        self.list_kind
            .clone()
            .unwrap_or_else(|| Text::Owned(format!("{}List", self.gvk.kind)))
    }

    /// Returns true if the kind is namespaced.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Returns true if the kind has the subresource `name`.
    #[must_use]
    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.contains(name)
    }

    /// The path of the group and version: `/api/v1`, `/apis/batch/v1`.
    #[must_use]
    pub fn api_path(&self) -> String {
        if self.gvk.group.is_empty() {
            format!("/api/{}", self.gvk.version)
        } else {
            format!("/apis/{}/{}", self.gvk.group, self.gvk.version)
        }
    }

    /// The path of a collection, in one namespace or in all.
    ///
    /// ```
    /// let job = longshore_model::kind::builtin("batch", "Job").unwrap();
    /// assert_eq!(job.collection_path(Some("a")), "/apis/batch/v1/namespaces/a/jobs");
    /// ```
    #[must_use]
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        match namespace {
            Some(namespace) if self.is_namespaced() => {
                format!("{}/namespaces/{namespace}/{}", self.api_path(), self.plural)
            }
            _ => format!("{}/{}", self.api_path(), self.plural),
        }
    }

    /// Returns true if `word` is a name of this kind: its kind, plural, singular or a short name,
    /// in any letter case, with or without the group.
    #[must_use]
    pub fn has_name(&self, word: &str) -> bool {
        let word = word.to_ascii_lowercase();
        let is_name = |word: &str| {
            word == self.plural
                || word == self.singular
                || self.short_names.contains(word)
                || self.gvk.kind.eq_ignore_ascii_case(word)
        };
        is_name(&word)
            || word
                .split_once('.')
                .is_some_and(|(name, group)| group == self.gvk.group && is_name(name))
    }
}

/// The storage version of an API group.
const fn stored_version(group: &str) -> &'static str {
    match group.as_bytes() {
        b"autoscaling" => "v2",
        _ => "v1",
    }
}

#[allow(clippy::too_many_arguments, reason = "one line of a table")]
const fn kind(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    scope: Scope,
    subresources: &'static [&'static str],
) -> KindInfo {
    KindInfo {
        gvk: Gvk {
            group: Text::Borrowed(group),
            version: Text::Borrowed(stored_version(group)),
            kind: Text::Borrowed(kind),
        },
        plural: Text::Borrowed(plural),
        singular: Text::Borrowed(singular),
        short_names: Words(Inner::Table(short_names)),
        categories: Words(Inner::Table(categories)),
        scope,
        subresources: Words(Inner::Table(subresources)),
        list_kind: None,
    }
}

use Scope::{Cluster, Namespaced};

/// The built-in kinds: group, kind, plural, singular, short names, categories,
/// scope, subresources. One line per kind.
#[rustfmt::skip]
pub static BUILTIN: &[KindInfo] = &[
    kind("", "ConfigMap", "configmaps", "configmap", &["cm"], &[], Namespaced, &[]),
    kind("", "Endpoints", "endpoints", "endpoints", &["ep"], &[], Namespaced, &[]),
    kind("", "Event", "events", "event", &["ev"], &[], Namespaced, &[]),
    kind("", "LimitRange", "limitranges", "limitrange", &["limits"], &[], Namespaced, &[]),
    kind("", "Namespace", "namespaces", "namespace", &["ns"], &[], Cluster, &["finalize", "status"]),
    kind("", "Node", "nodes", "node", &["no"], &[], Cluster, &["status"]),
    kind("", "PersistentVolume", "persistentvolumes", "persistentvolume", &["pv"], &[], Cluster, &["status"]),
    kind("", "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim", &["pvc"], &[], Namespaced, &["status"]),
    kind("", "Pod", "pods", "pod", &["po"], &["all"], Namespaced, &["attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize", "status"]),
    kind("", "PodTemplate", "podtemplates", "podtemplate", &[], &[], Namespaced, &[]),
    kind("", "ReplicationController", "replicationcontrollers", "replicationcontroller", &["rc"], &["all"], Namespaced, &["scale", "status"]),
    kind("", "ResourceQuota", "resourcequotas", "resourcequota", &["quota"], &[], Namespaced, &["status"]),
    kind("", "Secret", "secrets", "secret", &[], &[], Namespaced, &[]),
    kind("", "Service", "services", "service", &["svc"], &["all"], Namespaced, &["proxy", "status"]),
    kind("", "ServiceAccount", "serviceaccounts", "serviceaccount", &["sa"], &[], Namespaced, &["token"]),
    kind("admissionregistration.k8s.io", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", "mutatingadmissionpolicy", &[], &["api-extensions"], Cluster, &[]),
    kind("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", "mutatingadmissionpolicybinding", &[], &["api-extensions"], Cluster, &[]),
    kind("admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "mutatingwebhookconfiguration", &[], &["api-extensions"], Cluster, &[]),
    kind("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", "validatingadmissionpolicy", &[], &["api-extensions"], Cluster, &["status"]),
    kind("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", "validatingadmissionpolicybinding", &[], &["api-extensions"], Cluster, &[]),
    kind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "validatingwebhookconfiguration", &[], &["api-extensions"], Cluster, &[]),
    kind("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", "customresourcedefinition", &["crd", "crds"], &["api-extensions"], Cluster, &["status"]),
    kind("apiregistration.k8s.io", "APIService", "apiservices", "apiservice", &[], &["api-extensions"], Cluster, &["status"]),
    kind("apps", "ControllerRevision", "controllerrevisions", "controllerrevision", &[], &[], Namespaced, &[]),
    kind("apps", "DaemonSet", "daemonsets", "daemonset", &["ds"], &["all"], Namespaced, &["status"]),
    kind("apps", "Deployment", "deployments", "deployment", &["deploy"], &["all"], Namespaced, &["scale", "status"]),
    kind("apps", "ReplicaSet", "replicasets", "replicaset", &["rs"], &["all"], Namespaced, &["scale", "status"]),
    kind("apps", "StatefulSet", "statefulsets", "statefulset", &["sts"], &["all"], Namespaced, &["scale", "status"]),
    kind("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "horizontalpodautoscaler", &["hpa"], &["all"], Namespaced, &["status"]),
    kind("batch", "CronJob", "cronjobs", "cronjob", &["cj"], &["all"], Namespaced, &["status"]),
    kind("batch", "Job", "jobs", "job", &[], &["all"], Namespaced, &["status"]),
    kind("certificates.k8s.io", "CertificateSigningRequest", "certificatesigningrequests", "certificatesigningrequest", &["csr"], &[], Cluster, &["approval", "status"]),
    kind("certificates.k8s.io", "ClusterTrustBundle", "clustertrustbundles", "clustertrustbundle", &[], &[], Cluster, &[]),
    kind("certificates.k8s.io", "PodCertificateRequest", "podcertificaterequests", "podcertificaterequest", &[], &[], Namespaced, &["status"]),
    kind("coordination.k8s.io", "Lease", "leases", "lease", &[], &[], Namespaced, &[]),
    kind("discovery.k8s.io", "EndpointSlice", "endpointslices", "endpointslice", &[], &[], Namespaced, &[]),
    kind("flowcontrol.apiserver.k8s.io", "FlowSchema", "flowschemas", "flowschema", &[], &[], Cluster, &["status"]),
    kind("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", "prioritylevelconfigurations", "prioritylevelconfiguration", &[], &[], Cluster, &["status"]),
    kind("networking.k8s.io", "IPAddress", "ipaddresses", "ipaddress", &["ip"], &[], Cluster, &[]),
    kind("networking.k8s.io", "Ingress", "ingresses", "ingress", &["ing"], &[], Namespaced, &["status"]),
    kind("networking.k8s.io", "IngressClass", "ingressclasses", "ingressclass", &[], &[], Cluster, &[]),
    kind("networking.k8s.io", "NetworkPolicy", "networkpolicies", "networkpolicy", &["netpol"], &[], Namespaced, &[]),
    kind("networking.k8s.io", "ServiceCIDR", "servicecidrs", "servicecidr", &[], &[], Cluster, &["status"]),
    kind("node.k8s.io", "RuntimeClass", "runtimeclasses", "runtimeclass", &[], &[], Cluster, &[]),
    kind("policy", "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget", &["pdb"], &[], Namespaced, &["status"]),
    kind("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", "clusterrole", &[], &[], Cluster, &[]),
    kind("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding", &[], &[], Cluster, &[]),
    kind("rbac.authorization.k8s.io", "Role", "roles", "role", &[], &[], Namespaced, &[]),
    kind("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", "rolebinding", &[], &[], Namespaced, &[]),
    kind("resource.k8s.io", "DeviceClass", "deviceclasses", "deviceclass", &[], &[], Cluster, &[]),
    kind("resource.k8s.io", "DeviceTaintRule", "devicetaintrules", "devicetaintrule", &[], &[], Cluster, &["status"]),
    kind("resource.k8s.io", "ResourceClaim", "resourceclaims", "resourceclaim", &[], &[], Namespaced, &["status"]),
    kind("resource.k8s.io", "ResourceClaimTemplate", "resourceclaimtemplates", "resourceclaimtemplate", &[], &[], Namespaced, &[]),
    kind("resource.k8s.io", "ResourceSlice", "resourceslices", "resourceslice", &[], &[], Cluster, &[]),
    kind("scheduling.k8s.io", "PriorityClass", "priorityclasses", "priorityclass", &["pc"], &[], Cluster, &[]),
    kind("storage.k8s.io", "CSIDriver", "csidrivers", "csidriver", &[], &[], Cluster, &[]),
    kind("storage.k8s.io", "CSINode", "csinodes", "csinode", &[], &[], Cluster, &[]),
    kind("storage.k8s.io", "CSIStorageCapacity", "csistoragecapacities", "csistoragecapacity", &[], &[], Namespaced, &[]),
    kind("storage.k8s.io", "StorageClass", "storageclasses", "storageclass", &["sc"], &[], Cluster, &[]),
    kind("storage.k8s.io", "VolumeAttachment", "volumeattachments", "volumeattachment", &[], &[], Cluster, &["status"]),
    kind("storage.k8s.io", "VolumeAttributesClass", "volumeattributesclasses", "volumeattributesclass", &["vac"], &[], Cluster, &[]),
    kind("storagemigration.k8s.io", "StorageVersionMigration", "storageversionmigrations", "storageversionmigration", &[], &[], Cluster, &["status"]),
];

/// Finds the built-in kind of a group.
#[must_use]
pub fn builtin(group: &str, kind: &str) -> Option<&'static KindInfo> {
    BUILTIN
        .iter()
        .find(|info| info.gvk.group == group && info.gvk.kind == kind)
}

/// Finds the built-in kind with the name `word`.
///
/// ```
/// assert_eq!(longshore_model::kind::by_name("po").unwrap().gvk.kind, "Pod");
/// assert_eq!(longshore_model::kind::by_name("jobs.batch").unwrap().gvk.kind, "Job");
/// assert!(longshore_model::kind::by_name("shoes").is_none());
/// ```
#[must_use]
pub fn by_name(word: &str) -> Option<&'static KindInfo> {
    BUILTIN.iter().find(|info| info.has_name(word))
}
