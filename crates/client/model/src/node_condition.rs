//! Conditions of the embedded cluster's nodes, in addition to the conditions of Kubernetes.

/// The type of the condition that is `False` if limits of CPU and memory are not enforced. Its message
/// has the reason and the remedy.
pub const LIMITS_ENFORCED: &str = "longshore.dev/LimitsEnforced";
