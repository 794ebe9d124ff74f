//! What is judged: the rules of the API, on the server; the points of the
//! client. Each has its tests, and its table in the docs.

/// One of the two.
pub(super) struct Subject {
    /// The tests: a target of the conformance crate, and its folder.
    pub(super) tests: &'static str,
    /// How the names of its tests begin, before the number: `rule`.
    pub(super) word: &'static str,
    /// The table's file in the docs.
    pub(super) document: &'static str,
    /// What stands before the table; `{versions}` is those of the real servers.
    pub(super) opening: &'static str,
    /// Number and words.
    pub(super) rows: &'static [(u32, &'static str)],
}

/// All of them.
pub(super) const SUBJECTS: [Subject; 2] = [
    Subject {
        tests: "rules",
        word: "rule",
        document: "conformance.md",
        opening: RULES_OPENING,
        rows: RULES,
    },
    Subject {
        tests: "points",
        word: "point",
        document: "client-points.md",
        opening: POINTS_OPENING,
        rows: POINTS,
    },
];

const RULES_OPENING: &str = "\
# Conformance

The rules that clients of the Kubernetes API depend on, each with its tests in
`crates/conformance/tests/rules`. They are written from the rules, at the level of
HTTP, and run on the embedded server (`cargo xtask test`) and on real kube-apiservers
with etcd, without controllers: {versions}. `cargo xtask real build` and
`cargo xtask real-apiserver` build them, `cargo xtask test --cluster real` and
`--cluster old` run the tests on them. The embedded server is as the newer one; what the
older one has not is marked, not dropped.

Binding and finalizing (28) and what controllers and the node do (33 to 39) are tested
beside the crates that do it; what clients do in running pods (26, 27) also in
`tests/clients`.

`cargo xtask e2e` runs Kubernetes' own conformance tests on the embedded cluster and counts
them by special interest group. What the kube-controller-manager and the kube-scheduler
need of the embedded server and do not find:
[clients.md](clients.md#programs-of-a-control-plane).
";

const POINTS_OPENING: &str = "\
# What the client promises

The Python library `kube` is the ancestor of the client; these are its promises and
what has come since, each with its tests in `crates/conformance/tests/points`. They
run on the embedded server (`cargo xtask test`) and on real kube-apiservers with etcd,
without controllers and nodes: {versions} (`cargo xtask test --cluster real` and
`--cluster old`).
";

#[rustfmt::skip]
const RULES: &[(u32, &str)] = &[
    (1, "one revision for all kinds; a write that changes nothing makes none"),
    (2, "which version a GET or LIST answers from"),
    (3, "lists in chunks, all of one revision"),
    (4, "where a watch begins, and how it ends"),
    (5, "watches with selectors; deletes have versions of their own"),
    (6, "bookmarks"),
    (7, "lists that come as a watch"),
    (8, "PUT, stale versions, other uids"),
    (9, "POST, duplicates, namespaces, generated names"),
    (10, "generation"),
    (11, "DELETE: grace, finalizers, preconditions"),
    (12, "propagation to dependents"),
    (13, "dry runs"),
    (14, "unknown and duplicate fields"),
    (15, "the status and scale endpoints"),
    (16, "the kinds of patches"),
    (17, "strategic merge: directives and merge keys"),
    (18, "server-side apply"),
    (19, "field selectors"),
    (20, "label selectors"),
    (21, "Accept, tables, metadata alone, compression"),
    (22, "protobuf request bodies"),
    (23, "discovery, per version and aggregated"),
    (24, "OpenAPI v3 and v2"),
    (25, "version and health"),
    (26, "the logs of containers"),
    (27, "exec, attach and port-forward"),
    (28, "evictions and budgets; Events of both groups are one store"),
    (29, "the form of errors, times and lists"),
    (30, "CustomResourceDefinitions and their objects"),
    (31, "limits"),
    (32, "defaults, required and immutable fields"),
];

#[rustfmt::skip]
const POINTS: &[(u32, &str)] = &[
    (1, "connecting by URL, kubeconfig, context, in a pod"),
    (2, "a closed cluster refuses requests"),
    (3, "a view for each kind, and for kinds by their words"),
    (4, "making objects, from values and from manifests"),
    (5, "kinds by name at run time"),
    (6, "requests by path: the pool, closing"),
    (7, "URLs joined, with a base path kept"),
    (8, "requests by path: verbs, query, bodies, refusals"),
    (9, "results and items are immutable"),
    (10, "watches by path"),
    (11, "making a view sends nothing; kinds without namespaces"),
    (12, "what a view and a kind tell of themselves"),
    (13, "the newest version that is served"),
    (14, "lists and pages"),
    (15, "fetching one object"),
    (16, "filters by labels and fields"),
    (17, "watches: from now, from a version, resync"),
    (18, "closing a watch"),
    (19, "waiting for the next change"),
    (20, "events of a watch"),
    (21, "items are snapshots of one version"),
    (22, "what an item tells of itself"),
    (23, "making an object again"),
    (24, "the latest version of an item"),
    (25, "deleting, and its options"),
    (26, "changes of one item"),
    (27, "equality"),
    (28, "kinds are their names"),
    (29, "metadata"),
    (30, "labels and annotations"),
    (31, "errors"),
    (32, "nodes: addresses"),
    (33, "nodes: capacity, allocatable, conditions"),
    (34, "namespaces: phases"),
    (35, "ReplicaSets and ReplicationControllers: counts"),
    (36, "DaemonSets: counts"),
    (37, "Deployments: counts"),
    (38, "pods"),
    (39, "containers"),
    (40, "states of containers"),
    (41, "services: ingress of load balancers"),
    (42, "secrets"),
    (43, "words that newer servers know"),
    (44, "apply, patches, updates, status, scale, dry runs"),
    (45, "logs, exec, attach, port-forward, copies"),
    (46, "waiting for conditions"),
    (47, "caches"),
    (48, "owners, children, events"),
    (49, "what is tried again, and what is not"),
    (50, "tracing and metrics"),
];
