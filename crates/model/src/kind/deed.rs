//! How the embedded cluster handles the objects of each built-in kind. The
//! warnings of its API server and `docs/kinds.md` are based on this table.

use super::KindInfo;

/// What the embedded cluster does with the objects of a kind besides storing
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// A component acts on the objects; the text says how.
    Acts(&'static str),
    /// The kind is pure data: no component acts on it in any Kubernetes
    /// cluster.
    Data,
    /// The embedded cluster does not act on the objects; the text says what is
    /// missing.
    Stored(&'static str),
}

use Deed::{Acts, Data, Stored};

const NO_PODS: Deed = Stored("no pods are created");
const NO_RIGHTS: Deed =
    Stored("permissions are not enforced: every authenticated user can do everything");
const NO_ROUTES: Deed = Stored("no requests are routed");
const NO_WEBHOOKS: Deed = Stored("its webhooks are not called");
const NO_STORAGE: Deed = Stored("no storage is managed");

/// Group, kind, handling; in the order of [`BUILTIN`](super::BUILTIN).
#[rustfmt::skip]
static DEEDS: &[(&str, &str, Deed)] = &[
    ("", "ConfigMap", Acts("pods read it")),
    ("", "Endpoints", Stored("its addresses are not routed")),
    ("", "Event", Acts("written by controllers and the node; expires one hour after its last write")),
    ("", "LimitRange", Stored("its defaults and limits are not applied to pods")),
    ("", "Namespace", Acts("a controller creates its default service account, and deletes its contents with it")),
    ("", "Node", Acts("the node agent registers itself")),
    ("", "PersistentVolume", Stored("no claims are bound to it")),
    ("", "PersistentVolumeClaim", Stored("it is never bound, and pods that mount it do not start")),
    ("", "Pod", Acts("the scheduler assigns it, the node runs it as processes")),
    ("", "PodTemplate", Data),
    ("", "ReplicationController", Acts("a controller creates its pods")),
    ("", "ResourceQuota", Stored("it is not enforced")),
    ("", "Secret", Acts("pods read it")),
    ("", "Service", Acts("gets an address and ports; the names of its pods resolve")),
    ("", "ServiceAccount", Acts("pods name it")),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", NO_WEBHOOKS),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", NO_WEBHOOKS),
    ("apiextensions.k8s.io", "CustomResourceDefinition", Acts("defines a kind that is served")),
    ("apiregistration.k8s.io", "APIService", Stored("requests are not forwarded to its Service")),
    ("apps", "ControllerRevision", Data),
    ("apps", "DaemonSet", NO_PODS),
    ("apps", "Deployment", Acts("a controller creates its ReplicaSets and rolls them out")),
    ("apps", "ReplicaSet", Acts("a controller creates its pods")),
    ("apps", "StatefulSet", NO_PODS),
    ("autoscaling", "HorizontalPodAutoscaler", Stored("nothing is scaled")),
    ("batch", "CronJob", Acts("a controller creates its Jobs, in UTC unless `timeZone` is set")),
    ("batch", "Job", Acts("a controller creates and counts its pods")),
    ("certificates.k8s.io", "CertificateSigningRequest", Stored("it is never signed")),
    ("coordination.k8s.io", "Lease", Acts("the node agent renews its own")),
    ("discovery.k8s.io", "EndpointSlice", Stored("its addresses are not routed")),
    ("networking.k8s.io", "IPAddress", Stored("it reserves no address")),
    ("networking.k8s.io", "Ingress", NO_ROUTES),
    ("networking.k8s.io", "IngressClass", NO_ROUTES),
    ("networking.k8s.io", "NetworkPolicy", Stored("it is not enforced")),
    ("networking.k8s.io", "ServiceCIDR", Stored("Services get no addresses from it")),
    ("node.k8s.io", "RuntimeClass", Acts("new pods get its overhead and scheduling; the node does not start pods with a RuntimeClass")),
    ("policy", "PodDisruptionBudget", Acts("evictions respect it and count in its status; no controller updates the status")),
    ("rbac.authorization.k8s.io", "ClusterRole", NO_RIGHTS),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", NO_RIGHTS),
    ("rbac.authorization.k8s.io", "Role", NO_RIGHTS),
    ("rbac.authorization.k8s.io", "RoleBinding", NO_RIGHTS),
    ("scheduling.k8s.io", "PriorityClass", Acts("new pods get its priority")),
    ("storage.k8s.io", "CSIDriver", NO_STORAGE),
    ("storage.k8s.io", "CSINode", NO_STORAGE),
    ("storage.k8s.io", "CSIStorageCapacity", NO_STORAGE),
    ("storage.k8s.io", "StorageClass", NO_STORAGE),
    ("storage.k8s.io", "VolumeAttachment", NO_STORAGE),
    ("storage.k8s.io", "VolumeAttributesClass", NO_STORAGE),
];

/// How the embedded cluster handles the objects of a kind; `None` for kinds
/// that are not built in.
#[must_use]
pub fn deed(kind: &KindInfo) -> Option<Deed> {
    let gvk = &kind.gvk;
    let mut deeds = DEEDS.iter();
    let known = deeds.find(|(group, name, _)| *group == gvk.group && *name == gvk.kind);
    known.map(|(.., deed)| *deed)
}

/// The warning for clients that create an object on which the embedded cluster
/// does not act.
///
/// ```
/// use longshore_model::kind::{builtin, idle};
/// let warning = idle(builtin("apps", "StatefulSet").unwrap()).unwrap();
/// assert!(warning.starts_with("statefulsets.apps are stored, but"), "{warning}");
/// assert_eq!(idle(builtin("batch", "Job").unwrap()), None);
/// ```
#[must_use]
pub fn idle(kind: &KindInfo) -> Option<String> {
    match deed(kind)? {
        Acts(_) | Data => None,
        Stored(missing) => Some(format!(
            "{} are stored, but this cluster does not act on them: {missing}; see docs/kinds.md",
            kind.qualified()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::BUILTIN;

    #[test]
    fn exactly_the_built_in_kinds_have_an_entry() {
        let named = DEEDS.iter().map(|(group, kind, _)| (*group, *kind));
        let built_in = BUILTIN.iter();
        let built_in = built_in.map(|info| (&*info.gvk.group, &*info.gvk.kind));
        assert!(named.eq(built_in));
    }

    #[test]
    fn kinds_of_other_groups_have_no_entry() {
        for info in BUILTIN {
            let mut other = info.clone();
            other.gvk.group = "example.com".into();
            assert_eq!((deed(&other), idle(&other)), (None, None));
        }
    }
}
