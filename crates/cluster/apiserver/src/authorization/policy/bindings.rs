//! The default bindings, and the default roles in namespaces.

use super::table::{DefaultRole, named, on, role};

/// A subject of a default binding.
#[derive(Debug, Clone, Copy)]
pub(super) enum DefaultSubject {
    User(&'static str),
    Group(&'static str),
    /// A service account in kube-system.
    Account(&'static str),
}

use DefaultSubject::{Account, Group, User};

const AUTHENTICATED: DefaultSubject = Group("system:authenticated");
const ACCOUNTS: DefaultSubject = Group("system:serviceaccounts");

/// The ClusterRoleBindings. Each has the name of the role that it refers to.
pub(super) static CLUSTER: &[(&str, &[DefaultSubject])] = &[
    ("cluster-admin", &[Group("system:masters")]),
    ("system:basic-user", &[AUTHENTICATED]),
    ("system:cluster-trust-bundle-discovery", &[ACCOUNTS]),
    ("system:discovery", &[AUTHENTICATED]),
    (
        "system:kube-controller-manager",
        &[User("system:kube-controller-manager")],
    ),
    ("system:kube-dns", &[Account("kube-dns")]),
    ("system:kube-scheduler", &[User("system:kube-scheduler")]),
    ("system:monitoring", &[Group("system:monitoring")]),
    ("system:node", &[]),
    ("system:node-proxier", &[User("system:kube-proxy")]),
    (
        "system:public-info-viewer",
        &[AUTHENTICATED, Group("system:unauthenticated")],
    ),
    ("system:service-account-issuer-discovery", &[ACCOUNTS]),
    ("system:volume-scheduler", &[User("system:kube-scheduler")]),
];

/// A rule of the components that elect a leader.
const LEASES: &[super::table::DefaultRule] = &[
    on(
        "coordination.k8s.io",
        "leases",
        "create get list update watch",
    ),
    on(
        "coordination.k8s.io",
        "leasecandidates",
        "create get list update watch",
    ),
];

/// The Roles, with their namespaces.
pub(super) static ROLES: &[(&str, DefaultRole)] = &[
    (
        "kube-public",
        role(
            "system:controller:bootstrap-signer",
            &[
                on("core", "configmaps", "get list watch"),
                named("core", "configmaps", "cluster-info", "update"),
                on("core events.k8s.io", "events", "create patch update"),
            ],
        ),
    ),
    (
        "kube-system",
        role(
            "extension-apiserver-authentication-reader",
            &[named(
                "core",
                "configmaps",
                "extension-apiserver-authentication",
                "get list watch",
            )],
        ),
    ),
    (
        "kube-system",
        role("system::leader-locking-kube-controller-manager", LEASES),
    ),
    (
        "kube-system",
        role("system::leader-locking-kube-scheduler", LEASES),
    ),
    (
        "kube-system",
        role(
            "system:controller:bootstrap-signer",
            &[on("core", "secrets", "get list watch")],
        ),
    ),
    (
        "kube-system",
        role(
            "system:controller:cloud-provider",
            &[on("core", "configmaps", "create get list watch")],
        ),
    ),
    (
        "kube-system",
        role(
            "system:controller:token-cleaner",
            &[
                on("core", "secrets", "delete get list watch"),
                on("core events.k8s.io", "events", "create patch update"),
            ],
        ),
    ),
];

/// The RoleBindings: namespace, name, role, subjects.
pub(super) static NAMESPACED: &[(&str, &str, &str, &[DefaultSubject])] = &[
    (
        "kube-public",
        "system:controller:bootstrap-signer",
        "system:controller:bootstrap-signer",
        &[Account("bootstrap-signer")],
    ),
    (
        "kube-system",
        "system::extension-apiserver-authentication-reader",
        "extension-apiserver-authentication-reader",
        &[
            User("system:kube-controller-manager"),
            User("system:kube-scheduler"),
        ],
    ),
    (
        "kube-system",
        "system::leader-locking-kube-controller-manager",
        "system::leader-locking-kube-controller-manager",
        &[
            User("system:kube-controller-manager"),
            Account("kube-controller-manager"),
            Account("leader-election-controller"),
        ],
    ),
    (
        "kube-system",
        "system::leader-locking-kube-scheduler",
        "system::leader-locking-kube-scheduler",
        &[User("system:kube-scheduler"), Account("kube-scheduler")],
    ),
    (
        "kube-system",
        "system:controller:bootstrap-signer",
        "system:controller:bootstrap-signer",
        &[Account("bootstrap-signer")],
    ),
    (
        "kube-system",
        "system:controller:cloud-provider",
        "system:controller:cloud-provider",
        &[Account("cloud-provider")],
    ),
    (
        "kube-system",
        "system:controller:token-cleaner",
        "system:controller:token-cleaner",
        &[Account("token-cleaner")],
    ),
];
