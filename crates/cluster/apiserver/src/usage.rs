//! The names of the API of resource usage, which is served if a node measures usage.

/// The path of the kubelet's summary, as a subresource of the node.
pub(crate) const SUMMARY: &str = "proxy/stats/summary";
/// The API group.
pub(crate) const GROUP: &str = "metrics.k8s.io";
/// The version.
pub(crate) const VERSION: &str = "v1beta1";
/// The priorities of the group and of the version, the same as metrics-server's.
pub(crate) const PRIORITIES: (i64, i64) = (100, 100);
/// The resources, their kinds, and a flag that is set if they are namespaced.
pub(crate) const RESOURCES: [(&str, &str, bool); 2] = [
    ("nodes", "NodeMetrics", false),
    ("pods", "PodMetrics", true),
];
