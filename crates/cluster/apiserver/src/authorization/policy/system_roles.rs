//! The ClusterRoles of components of a cluster and of all users.

use super::table::{DefaultRole, named, on, role, urls};

/// The ClusterRoles of components and of all users.
pub(super) static ROLES: &[DefaultRole] = &[
    role(
        "system:auth-delegator",
        &[
            on("authentication.k8s.io", "tokenreviews", "create"),
            on("authorization.k8s.io", "subjectaccessreviews", "create"),
        ],
    ),
    role(
        "system:basic-user",
        &[
            on(
                "authorization.k8s.io",
                "selfsubjectaccessreviews selfsubjectrulesreviews",
                "create",
            ),
            on("authentication.k8s.io", "selfsubjectreviews", "create"),
        ],
    ),
    role(
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        &[on(
            "certificates.k8s.io",
            "certificatesigningrequests/nodeclient",
            "create",
        )],
    ),
    role(
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        &[on(
            "certificates.k8s.io",
            "certificatesigningrequests/selfnodeclient",
            "create",
        )],
    ),
    role(
        "system:certificates.k8s.io:kube-apiserver-client-approver",
        &[named(
            "certificates.k8s.io",
            "signers",
            "kubernetes.io/kube-apiserver-client",
            "approve",
        )],
    ),
    role(
        "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
        &[named(
            "certificates.k8s.io",
            "signers",
            "kubernetes.io/kube-apiserver-client-kubelet",
            "approve",
        )],
    ),
    role(
        "system:certificates.k8s.io:kubelet-serving-approver",
        &[named(
            "certificates.k8s.io",
            "signers",
            "kubernetes.io/kubelet-serving",
            "approve",
        )],
    ),
    role(
        "system:certificates.k8s.io:legacy-unknown-approver",
        &[named(
            "certificates.k8s.io",
            "signers",
            "kubernetes.io/legacy-unknown",
            "approve",
        )],
    ),
    role(
        "system:cluster-trust-bundle-discovery",
        &[on(
            "certificates.k8s.io",
            "clustertrustbundles",
            "get list watch",
        )],
    ),
    role(
        "system:discovery",
        &[urls(
            "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/",
            "get",
        )],
    ),
    role(
        "system:heapster",
        &[
            on("core", "events namespaces nodes pods", "get list watch"),
            on("extensions", "deployments", "get list watch"),
        ],
    ),
    role(
        "system:kube-aggregator",
        &[on("core", "endpoints services", "get list watch")],
    ),
    role(
        "system:kube-controller-manager",
        &[
            on("core events.k8s.io", "events", "create patch update"),
            on("coordination.k8s.io", "leases", "create"),
            named(
                "coordination.k8s.io",
                "leases",
                "kube-controller-manager",
                "get update",
            ),
            on("core", "secrets serviceaccounts", "create"),
            on("core", "secrets", "delete"),
            on(
                "core",
                "configmaps namespaces secrets serviceaccounts",
                "get",
            ),
            on("core", "secrets serviceaccounts", "update"),
            on("authentication.k8s.io", "tokenreviews", "create"),
            on("authorization.k8s.io", "subjectaccessreviews", "create"),
            on("*", "*", "list watch"),
            on("core", "serviceaccounts/token", "create"),
        ],
    ),
    role(
        "system:kube-dns",
        &[on("core", "endpoints services", "list watch")],
    ),
    role(
        "system:kube-scheduler",
        &[
            on("core events.k8s.io", "events", "create patch update"),
            on("coordination.k8s.io", "leases", "create"),
            named(
                "coordination.k8s.io",
                "leases",
                "kube-scheduler",
                "get list update watch",
            ),
            on(
                "coordination.k8s.io",
                "leasecandidates",
                "create delete deletecollection get list patch update watch",
            ),
            on("core", "nodes", "get list watch"),
            on("core", "pods", "delete get list watch"),
            on("core", "bindings pods/binding", "create"),
            on("core", "pods/status", "patch update"),
            on("core", "replicationcontrollers services", "get list watch"),
            on("apps extensions", "replicasets", "get list watch"),
            on("apps", "statefulsets", "get list watch"),
            on("policy", "poddisruptionbudgets", "get list watch"),
            on(
                "core",
                "persistentvolumeclaims persistentvolumes",
                "get list watch",
            ),
            on("authentication.k8s.io", "tokenreviews", "create"),
            on("authorization.k8s.io", "subjectaccessreviews", "create"),
            on("storage.k8s.io", "csinodes", "get list watch"),
            on("storage.k8s.io", "volumeattachments", "get list watch"),
            on("core", "namespaces", "get list watch"),
            on("storage.k8s.io", "csidrivers", "get list watch"),
            on("storage.k8s.io", "csistoragecapacities", "get list watch"),
            on("resource.k8s.io", "deviceclasses", "get list watch"),
            on(
                "resource.k8s.io",
                "resourceclaims",
                "get list patch update watch",
            ),
            on(
                "resource.k8s.io",
                "resourceclaims/status",
                "get list patch update watch",
            ),
            on("core", "pods/finalizers", "update"),
            on("resource.k8s.io", "resourceslices", "get list watch"),
            on("resource.k8s.io", "resourceclaims", "create delete"),
            on("resource.k8s.io", "devicetaintrules", "get list watch"),
            on("resource.k8s.io", "resourceclaims/binding", "patch update"),
        ],
    ),
    role(
        "system:kubelet-api-admin",
        &[
            on("core", "nodes", "get list watch"),
            on("core", "nodes", "proxy"),
            on(
                "core",
                "nodes/log nodes/metrics nodes/proxy nodes/stats",
                "*",
            ),
            on("core", "nodes/configz nodes/healthz nodes/pods", "*"),
        ],
    ),
    role(
        "system:monitoring",
        &[
            urls(
                "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz",
                "get",
            ),
            on("core", "nodes/metrics", "get"),
        ],
    ),
    role(
        "system:node",
        &[
            on("authentication.k8s.io", "tokenreviews", "create"),
            on(
                "authorization.k8s.io",
                "localsubjectaccessreviews subjectaccessreviews",
                "create",
            ),
            on("core", "services", "get list watch"),
            on("core", "nodes", "create get list watch"),
            on("core", "nodes/status", "patch update"),
            on("core", "nodes", "patch update"),
            on("core events.k8s.io", "events", "create patch update"),
            on("core", "pods", "get list watch"),
            on("core", "pods", "create delete"),
            on("core", "pods/status", "patch update"),
            on("core", "pods/eviction", "create"),
            on("core", "configmaps secrets", "get list watch"),
            on("core", "persistentvolumeclaims persistentvolumes", "get"),
            on("core", "endpoints", "get"),
            on(
                "certificates.k8s.io",
                "certificatesigningrequests",
                "create get list watch",
            ),
            on(
                "coordination.k8s.io",
                "leases",
                "create delete get patch update",
            ),
            on("storage.k8s.io", "volumeattachments", "get"),
            on("core", "serviceaccounts/token", "create"),
            on("core", "persistentvolumeclaims/status", "get patch update"),
            on("storage.k8s.io", "csidrivers", "get list watch"),
            on(
                "storage.k8s.io",
                "csinodes",
                "create delete get patch update",
            ),
            on("node.k8s.io", "runtimeclasses", "get list watch"),
            on("resource.k8s.io", "resourceclaims", "get"),
            on("resource.k8s.io", "resourceslices", "deletecollection"),
            on(
                "certificates.k8s.io",
                "clustertrustbundles",
                "get list watch",
            ),
            on("core", "serviceaccounts", "get"),
            on(
                "certificates.k8s.io",
                "podcertificaterequests",
                "create get list watch",
            ),
        ],
    ),
    role(
        "system:node-bootstrapper",
        &[on(
            "certificates.k8s.io",
            "certificatesigningrequests",
            "create get list watch",
        )],
    ),
    role(
        "system:node-problem-detector",
        &[
            on("core", "nodes", "get"),
            on("core", "nodes/status", "patch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:node-proxier",
        &[
            on("core", "endpoints services", "list watch"),
            on("core", "nodes", "get list watch"),
            on("core events.k8s.io", "events", "create patch update"),
            on("networking.k8s.io", "servicecidrs", "list watch"),
            on("discovery.k8s.io", "endpointslices", "list watch"),
        ],
    ),
    role(
        "system:persistent-volume-provisioner",
        &[
            on("core", "persistentvolumes", "create delete get list watch"),
            on("core", "persistentvolumeclaims", "get list update watch"),
            on("storage.k8s.io", "storageclasses", "get list watch"),
            on("core", "events", "watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:public-info-viewer",
        &[urls("/healthz /livez /readyz /version /version/", "get")],
    ),
    role(
        "system:service-account-issuer-discovery",
        &[urls(
            "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
            "get",
        )],
    ),
    role(
        "system:volume-scheduler",
        &[
            on("core", "persistentvolumes", "get list patch update watch"),
            on("storage.k8s.io", "storageclasses", "get list watch"),
            on(
                "core",
                "persistentvolumeclaims",
                "get list patch update watch",
            ),
        ],
    ),
];
