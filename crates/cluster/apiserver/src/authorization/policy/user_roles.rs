//! The ClusterRoles for users: cluster-admin, admin, edit, view, and the roles that
//! these aggregate.

use super::table::{DefaultRole, on, role, urls};

/// The ClusterRoles for users.
pub(super) static ROLES: &[DefaultRole] = &[
    DefaultRole {
        gathers: Some("admin"),
        ..role("admin", &[])
    },
    role("cluster-admin", &[on("*", "*", "*"), urls("*", "*")]),
    DefaultRole {
        added_to: Some("admin"),
        gathers: Some("edit"),
        ..role("edit", &[])
    },
    DefaultRole {
        added_to: Some("admin"),
        ..role(
            "system:aggregate-to-admin",
            &[
                on(
                    "authorization.k8s.io",
                    "localsubjectaccessreviews",
                    "create",
                ),
                on(
                    "rbac.authorization.k8s.io",
                    "rolebindings roles",
                    "create delete deletecollection get list patch update watch",
                ),
            ],
        )
    },
    DefaultRole {
        added_to: Some("edit"),
        ..role(
            "system:aggregate-to-edit",
            &[
                on(
                    "core",
                    "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy",
                    "get list watch",
                ),
                on("core", "serviceaccounts", "impersonate"),
                on(
                    "core",
                    "pods pods/attach pods/exec pods/portforward pods/proxy",
                    "create delete deletecollection patch update",
                ),
                on("core", "pods/eviction", "create"),
                on(
                    "core",
                    "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy",
                    "create delete deletecollection patch update",
                ),
                on("core", "serviceaccounts/token", "create"),
                on(
                    "core events.k8s.io",
                    "events",
                    "create delete deletecollection patch update",
                ),
                on(
                    "apps",
                    "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale",
                    "create delete deletecollection patch update",
                ),
                on(
                    "autoscaling",
                    "horizontalpodautoscalers",
                    "create delete deletecollection patch update",
                ),
                on(
                    "batch",
                    "cronjobs jobs",
                    "create delete deletecollection patch update",
                ),
                on(
                    "extensions",
                    "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets replicasets/scale replicationcontrollers/scale",
                    "create delete deletecollection patch update",
                ),
                on(
                    "policy",
                    "poddisruptionbudgets",
                    "create delete deletecollection patch update",
                ),
                on(
                    "networking.k8s.io",
                    "ingresses networkpolicies",
                    "create delete deletecollection patch update",
                ),
                on(
                    "coordination.k8s.io",
                    "leases",
                    "create delete deletecollection get list patch update watch",
                ),
                on(
                    "resource.k8s.io",
                    "resourceclaims resourceclaimtemplates",
                    "create delete deletecollection patch update",
                ),
            ],
        )
    },
    DefaultRole {
        added_to: Some("view"),
        ..role(
            "system:aggregate-to-view",
            &[
                on(
                    "core",
                    "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
                    "get list watch",
                ),
                on(
                    "core",
                    "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas resourcequotas/status",
                    "get list watch",
                ),
                on("core", "namespaces", "get list watch"),
                on("core events.k8s.io", "events", "get list watch"),
                on("discovery.k8s.io", "endpointslices", "get list watch"),
                on(
                    "apps",
                    "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
                    "get list watch",
                ),
                on(
                    "autoscaling",
                    "horizontalpodautoscalers horizontalpodautoscalers/status",
                    "get list watch",
                ),
                on(
                    "batch",
                    "cronjobs cronjobs/status jobs jobs/status",
                    "get list watch",
                ),
                on(
                    "extensions",
                    "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale",
                    "get list watch",
                ),
                on(
                    "policy",
                    "poddisruptionbudgets poddisruptionbudgets/status",
                    "get list watch",
                ),
                on(
                    "networking.k8s.io",
                    "ingresses ingresses/status networkpolicies",
                    "get list watch",
                ),
                on(
                    "resource.k8s.io",
                    "resourceclaims resourceclaims/status resourceclaimtemplates",
                    "get list watch",
                ),
            ],
        )
    },
    DefaultRole {
        added_to: Some("edit"),
        gathers: Some("view"),
        ..role("view", &[])
    },
];
