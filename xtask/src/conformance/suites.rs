//! The two test suites, each with its table in the docs: the API rules of the server, and the
//! guarantees of the client.

/// A test suite and its table.
pub(super) struct Suite {
    /// The test target of the conformance crate, which is also the name of its folder.
    pub(super) tests: &'static str,
    /// The prefix of the names of its tests, before the number: `rule`.
    pub(super) prefix: &'static str,
    /// The file of the table in the docs.
    pub(super) document: &'static str,
    /// The text before the table; `{versions}` stands for the versions of the real servers.
    pub(super) introduction: &'static str,
    /// Number and topic.
    pub(super) rows: &'static [(u32, &'static str)],
}

/// All suites.
pub(super) const SUITES: [Suite; 2] = [
    Suite {
        tests: "rules",
        prefix: "rule",
        document: "conformance.md",
        introduction: RULES_INTRODUCTION,
        rows: RULES,
    },
    Suite {
        tests: "points",
        prefix: "point",
        document: "client-points.md",
        introduction: POINTS_INTRODUCTION,
        rows: POINTS,
    },
];

const RULES_INTRODUCTION: &str = "\
# Conformance

This page lists the rules of the Kubernetes API that clients depend on. The tests of each
rule are in `crates/interop/conformance/tests/rules`. They are written from the rules, at the HTTP
level, and run on the embedded server (`cargo xtask test`) and on real kube-apiservers with
etcd, without controllers: {versions}.
`cargo xtask real build` and `cargo xtask real-apiserver` build the real servers;
`cargo xtask test --cluster real` and `--cluster old` run the tests on them. The embedded
server behaves like the newer version. Tests of features that the older version lacks are
marked, not removed.

The tests of binding and finalizing (28) and of controllers and the node (33 to 39) are in
the crates that implement them. `tests/clients` contains more tests of client operations in
running pods (26, 27).

[e2e.md](e2e.md) lists the results of the Kubernetes conformance tests on the embedded
cluster, by special interest group and cause; `cargo xtask e2e` runs them. For the features that the kube-controller-manager
and the kube-scheduler require and the embedded server lacks, see
[clients.md](clients.md#control-plane-components).
";

const POINTS_INTRODUCTION: &str = "\
# Client guarantees

The client is the successor of the Python library `kube`. This page lists the guarantees of
`kube` and the guarantees added since. The tests of each point are in
`crates/interop/conformance/tests/points`. They run on the embedded server (`cargo xtask test`) and
on real kube-apiservers with etcd, without controllers and nodes: {versions}
(`cargo xtask test --cluster real` and `--cluster old`).
";

#[rustfmt::skip]
const RULES: &[(u32, &str)] = &[
    (1, "a single revision counter for all kinds; writes that change nothing create no revision"),
    (2, "resource version semantics of GET and LIST"),
    (3, "paginated lists at a single revision"),
    (4, "start and end of watches"),
    (5, "watches with selectors; deletes have their own resource versions"),
    (6, "bookmarks"),
    (7, "streaming lists"),
    (8, "PUT, stale resource versions, UID mismatches"),
    (9, "POST, duplicates, namespaces, generated names"),
    (10, "generation"),
    (11, "DELETE: grace periods, finalizers, preconditions"),
    (12, "propagation of deletes to dependents"),
    (13, "dry runs"),
    (14, "unknown and duplicate fields"),
    (15, "status and scale subresources"),
    (16, "patch types"),
    (17, "strategic merge patch: directives and merge keys"),
    (18, "server-side apply"),
    (19, "field selectors"),
    (20, "label selectors"),
    (21, "the Accept header, tables, metadata-only responses, compression"),
    (22, "protobuf request bodies"),
    (23, "discovery, per version and aggregated"),
    (24, "OpenAPI v3 and v2"),
    (25, "version and health endpoints"),
    (26, "container logs"),
    (27, "exec, attach, and port-forward"),
    (28, "evictions and PodDisruptionBudgets; Events of both API groups share one store"),
    (29, "format of errors, timestamps, and lists"),
    (30, "CustomResourceDefinitions and custom objects"),
    (31, "limits"),
    (32, "default values, required and immutable fields"),
];

#[rustfmt::skip]
const POINTS: &[(u32, &str)] = &[
    (1, "connections by URL, by kubeconfig, by context, and in a pod"),
    (2, "rejection of requests on a closed cluster"),
    (3, "a view for each kind, and views of kinds by name"),
    (4, "creation of objects from values and manifests"),
    (5, "kinds by name at run time"),
    (6, "requests by path: connection pool, closing"),
    (7, "URL joining with a base path"),
    (8, "requests by path: verbs, query parameters, bodies, errors"),
    (9, "immutable results and items"),
    (10, "watches by path"),
    (11, "views are created without requests; cluster-scoped kinds"),
    (12, "properties of views and kinds"),
    (13, "selection of the newest served version"),
    (14, "lists and pagination"),
    (15, "fetching a single object"),
    (16, "label and field selectors"),
    (17, "watches: from now, from a resource version, resync"),
    (18, "closing a watch"),
    (19, "waiting for the next change"),
    (20, "watch events"),
    (21, "items are snapshots of one resource version"),
    (22, "properties of items"),
    (23, "recreating an object"),
    (24, "the latest version of an item"),
    (25, "deletion and its options"),
    (26, "changes of one item"),
    (27, "equality"),
    (28, "kind names"),
    (29, "metadata"),
    (30, "labels and annotations"),
    (31, "errors"),
    (32, "nodes: addresses"),
    (33, "nodes: capacity, allocatable resources, conditions"),
    (34, "namespaces: phases"),
    (35, "ReplicaSets and ReplicationControllers: replica counts"),
    (36, "DaemonSets: pod counts"),
    (37, "Deployments: replica counts"),
    (38, "pods"),
    (39, "containers"),
    (40, "container states"),
    (41, "Services: load balancer ingress"),
    (42, "Secrets"),
    (43, "unknown values from newer servers"),
    (44, "apply, patches, updates, status, scale, dry runs"),
    (45, "logs, exec, attach, port-forward, file copies"),
    (46, "waiting for conditions"),
    (47, "caches"),
    (48, "owners, children, events"),
    (49, "retries"),
    (50, "tracing and metrics"),
];
