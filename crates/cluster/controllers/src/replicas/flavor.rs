//! The differences between ReplicaSets and ReplicationControllers.

/// The properties of one of the two kinds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flavor {
    /// The API group.
    pub(crate) group: &'static str,
    /// The API version, `apps/v1` or `v1`.
    pub(crate) api_version: &'static str,
    /// The kind.
    pub(crate) kind: &'static str,
    /// The controller's name in the log.
    pub(crate) what: &'static str,
    /// The controller's name in events.
    pub(crate) component: &'static str,
    /// True if the status has `terminatingReplicas`.
    pub(crate) counts_terminating: bool,
    /// True if the selector is a plain map of labels.
    pub(crate) plain_selector: bool,
}

/// ReplicaSets.
pub(crate) static REPLICA_SET: Flavor = Flavor {
    group: "apps",
    api_version: "apps/v1",
    kind: "ReplicaSet",
    what: "replicaset",
    component: "replicaset-controller",
    counts_terminating: true,
    plain_selector: false,
};

/// ReplicationControllers.
pub(crate) static REPLICATION_CONTROLLER: Flavor = Flavor {
    group: "",
    api_version: "v1",
    kind: "ReplicationController",
    what: "replicationcontroller",
    component: "replication-controller",
    counts_terminating: false,
    plain_selector: true,
};
