//! The names of resources that a quota can limit.

/// The prefix of the number of objects of a kind.
pub(super) const COUNT: &str = "count/";
/// The prefix of requests.
pub(super) const REQUESTS: &str = "requests.";
/// The prefix of huge pages.
pub(super) const HUGE_PAGES: &str = "hugepages-";
/// The part of a resource name that follows the name of a storage class, for its claims.
pub(super) const OF_STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";

/// The resources that a pod uses, in addition to huge pages and extended resources.
pub(super) const POD: &[&str] = &[
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];

/// The resources that a Service uses.
pub(super) const SERVICE: &[&str] = &[
    "count/services",
    "services",
    "services.nodeports",
    "services.loadbalancers",
];

/// The resources that a claim uses, also for each storage class.
pub(super) const CLAIM: &[&str] = &["persistentvolumeclaims", "requests.storage"];

/// The name of the number of objects of a kind, given its group and plural.
pub(super) fn count_of(group: &str, plural: &str) -> String {
    match group {
        "" => format!("{COUNT}{plural}"),
        group => format!("{COUNT}{plural}.{group}"),
    }
}

/// A second name of the number of objects of a kind, for kinds that could be limited before
/// all others.
pub(super) fn alias_of(group: &str, plural: &str) -> Option<&'static str> {
    match (group, plural) {
        ("", "configmaps") => Some("configmaps"),
        ("", "resourcequotas") => Some("resourcequotas"),
        ("", "replicationcontrollers") => Some("replicationcontrollers"),
        ("", "secrets") => Some("secrets"),
        _ => None,
    }
}

/// Returns true if Kubernetes itself defines a resource.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns true if a container can request this extended resource.
pub(super) fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with(REQUESTS)
}

/// Returns true if a name limits the requests of an extended resource.
pub(super) fn limits_extended(name: &str) -> bool {
    name.starts_with(REQUESTS) && !is_native(name)
}
