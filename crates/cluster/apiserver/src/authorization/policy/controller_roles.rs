//! The ClusterRoles of Kubernetes' controllers. Each is bound to a service account in kube-system.

use super::table::{DefaultRole, named, on, role};

/// The ClusterRoles of controllers; their names start with `system:controller:`.
pub(super) static ROLES: &[DefaultRole] = &[
    role(
        "system:controller:attachdetach-controller",
        &[
            on(
                "core",
                "persistentvolumeclaims persistentvolumes",
                "list watch",
            ),
            on("core", "nodes", "get list watch"),
            on("core", "nodes/status", "patch update"),
            on("core", "pods", "list watch"),
            on("core events.k8s.io", "events", "create patch update"),
            on(
                "storage.k8s.io",
                "volumeattachments",
                "create delete get list watch",
            ),
            on("storage.k8s.io", "csidrivers", "get list watch"),
            on("storage.k8s.io", "csinodes", "get list watch"),
        ],
    ),
    role(
        "system:controller:certificate-controller",
        &[
            on(
                "certificates.k8s.io",
                "certificatesigningrequests",
                "delete get list watch",
            ),
            on(
                "certificates.k8s.io",
                "certificatesigningrequests/approval certificatesigningrequests/status",
                "update",
            ),
            named(
                "certificates.k8s.io",
                "signers",
                "kubernetes.io/kube-apiserver-client-kubelet",
                "approve",
            ),
            named(
                "certificates.k8s.io",
                "signers",
                "kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown",
                "sign",
            ),
            on("authorization.k8s.io", "subjectaccessreviews", "create"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:clusterrole-aggregation-controller",
        &[on(
            "rbac.authorization.k8s.io",
            "clusterroles",
            "escalate get list patch update watch",
        )],
    ),
    role(
        "system:controller:cronjob-controller",
        &[
            on("batch", "cronjobs", "get list update watch"),
            on("batch", "jobs", "create delete get list patch update watch"),
            on("batch", "cronjobs/status", "update"),
            on("batch", "cronjobs/finalizers", "update"),
            on("core", "pods", "delete list watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:daemon-set-controller",
        &[
            on("apps extensions", "daemonsets", "get list watch"),
            on("apps extensions", "daemonsets/status", "update"),
            on("apps extensions", "daemonsets/finalizers", "update"),
            on("core", "nodes", "list watch"),
            on("core", "pods", "create delete list patch watch"),
            on("core", "pods/binding", "create"),
            on(
                "apps",
                "controllerrevisions",
                "create delete get list patch update watch",
            ),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:deployment-controller",
        &[
            on("apps extensions", "deployments", "get list update watch"),
            on("apps extensions", "deployments/status", "update"),
            on("apps extensions", "deployments/finalizers", "update"),
            on(
                "apps extensions",
                "replicasets",
                "create delete get list patch update watch",
            ),
            on("core", "pods", "get list update watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:device-taint-eviction-controller",
        &[
            on("core", "pods", "delete get list watch"),
            on("core", "pods/status", "patch update"),
            on("resource.k8s.io", "resourceclaims", "get list watch"),
            on("resource.k8s.io", "resourceslices", "get list watch"),
            on("resource.k8s.io", "deviceclasses", "get list watch"),
            on("core events.k8s.io", "events", "create patch update"),
            on("resource.k8s.io", "devicetaintrules/status", "patch update"),
            on("resource.k8s.io", "devicetaintrules", "get list watch"),
        ],
    ),
    role(
        "system:controller:disruption-controller",
        &[
            on("apps extensions", "deployments", "get list watch"),
            on("apps extensions", "replicasets", "get list watch"),
            on("core", "replicationcontrollers", "get list watch"),
            on("policy", "poddisruptionbudgets", "get list watch"),
            on("apps", "statefulsets", "get list watch"),
            on("policy", "poddisruptionbudgets/status", "update"),
            on("core", "pods/status", "patch update"),
            on("*", "*/scale", "get"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:endpoint-controller",
        &[
            on("core", "pods services", "get list watch"),
            on("core", "endpoints", "create delete get list update watch"),
            on("core", "endpoints/restricted", "create"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:endpointslice-controller",
        &[
            on("core", "nodes pods services", "get list watch"),
            on("core", "services/finalizers", "update"),
            on(
                "discovery.k8s.io",
                "endpointslices",
                "create delete get list update watch",
            ),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:endpointslicemirroring-controller",
        &[
            on("core", "endpoints services", "get list watch"),
            on("core", "services/finalizers", "update"),
            on("core", "endpoints/finalizers", "update"),
            on(
                "discovery.k8s.io",
                "endpointslices",
                "create delete get list update watch",
            ),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:ephemeral-volume-controller",
        &[
            on("core", "pods", "get list watch"),
            on("core", "pods/finalizers", "update"),
            on("core", "persistentvolumeclaims", "create get list watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:expand-controller",
        &[
            on("core", "persistentvolumes", "get list patch update watch"),
            on("core", "persistentvolumeclaims/status", "patch update"),
            on("core", "persistentvolumeclaims", "get list watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:generic-garbage-collector",
        &[
            on("*", "*", "delete get list patch update watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:horizontal-pod-autoscaler",
        &[
            on("autoscaling", "horizontalpodautoscalers", "get list watch"),
            on("autoscaling", "horizontalpodautoscalers/status", "update"),
            on("*", "*/scale", "get update"),
            on("core", "pods", "list watch"),
            on("metrics.k8s.io", "pods", "list watch"),
            on("custom.metrics.k8s.io", "*", "get list watch"),
            on("external.metrics.k8s.io", "*", "get list watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:job-controller",
        &[
            on("batch", "jobs", "get list patch update watch"),
            on("batch", "jobs/status", "update"),
            on("batch", "jobs/finalizers", "update"),
            on("core", "pods", "create delete list patch watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:kube-apiserver-serving-clustertrustbundle-publisher",
        &[
            named(
                "certificates.k8s.io",
                "signers",
                "kubernetes.io/kube-apiserver-serving",
                "attest",
            ),
            on(
                "certificates.k8s.io",
                "clustertrustbundles",
                "create delete list update watch",
            ),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:legacy-service-account-token-cleaner",
        &[
            named(
                "core",
                "configmaps",
                "kube-apiserver-legacy-service-account-token-tracking",
                "get",
            ),
            on("core", "secrets", "delete patch"),
        ],
    ),
    role(
        "system:controller:namespace-controller",
        &[
            on("core", "namespaces", "delete get list watch"),
            on("core", "namespaces/finalize namespaces/status", "update"),
            on("*", "*", "delete deletecollection get list watch"),
        ],
    ),
    role(
        "system:controller:node-controller",
        &[
            on("core", "nodes", "delete get list patch update watch"),
            on("core", "nodes/status", "patch update"),
            on("core", "pods/status", "patch update"),
            on("core", "pods", "delete get list watch"),
            on("coordination.k8s.io", "leases", "get list watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:persistent-volume-binder",
        &[
            on(
                "core",
                "persistentvolumes",
                "create delete get list update watch",
            ),
            on("core", "persistentvolumes/status", "update"),
            on("core", "persistentvolumeclaims", "get list update watch"),
            on("core", "persistentvolumeclaims/status", "update"),
            on("core", "pods", "create delete get list watch"),
            on("storage.k8s.io", "storageclasses", "get list watch"),
            on("core", "nodes", "list watch"),
            on("core events.k8s.io", "events", "create patch update"),
            on("core", "events", "watch"),
        ],
    ),
    role(
        "system:controller:pod-garbage-collector",
        &[
            on("core", "pods", "delete list watch"),
            on("core", "nodes", "get list watch"),
            on("core", "pods/status", "patch"),
        ],
    ),
    role(
        "system:controller:podcertificaterequestcleaner",
        &[on(
            "certificates.k8s.io",
            "podcertificaterequests",
            "delete get list watch",
        )],
    ),
    role(
        "system:controller:pv-protection-controller",
        &[
            on("core", "persistentvolumes", "get list update watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:pvc-protection-controller",
        &[
            on("core", "persistentvolumeclaims", "get list update watch"),
            on("core", "persistentvolumeclaims/status", "update"),
            on("core", "pods", "get list watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:replicaset-controller",
        &[
            on("apps extensions", "replicasets", "get list update watch"),
            on("apps extensions", "replicasets/status", "update"),
            on("apps extensions", "replicasets/finalizers", "update"),
            on("core", "pods", "create delete list patch watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:replication-controller",
        &[
            on("core", "replicationcontrollers", "get list update watch"),
            on("core", "replicationcontrollers/status", "update"),
            on("core", "replicationcontrollers/finalizers", "update"),
            on("core", "pods", "create delete list patch watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:resource-claim-controller",
        &[
            on("core", "pods", "get list watch"),
            on("core", "pods/finalizers", "update"),
            on(
                "resource.k8s.io",
                "resourceclaims",
                "create delete get list watch",
            ),
            on(
                "resource.k8s.io",
                "resourceclaims resourceclaims/status",
                "patch update",
            ),
            on("core", "pods/status", "patch update"),
            on("core events.k8s.io", "events", "create patch update"),
            on("resource.k8s.io", "resourceclaims/binding", "patch update"),
        ],
    ),
    role(
        "system:controller:resourcequota-controller",
        &[
            on("*", "*", "list watch"),
            on("core", "resourcequotas/status", "update"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:root-ca-cert-publisher",
        &[
            on("core", "configmaps", "create update"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:route-controller",
        &[
            on("core", "nodes", "list watch"),
            on("core", "nodes/status", "patch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:selinux-warning-controller",
        &[
            on("core events.k8s.io", "events", "create patch update"),
            on("core", "persistentvolumes", "get list watch"),
            on("core", "persistentvolumeclaims", "get list watch"),
            on("core", "pods", "get list watch"),
            on("storage.k8s.io", "csidrivers", "get list watch"),
        ],
    ),
    role(
        "system:controller:service-account-controller",
        &[
            on("core", "serviceaccounts", "create"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:service-cidrs-controller",
        &[
            on(
                "networking.k8s.io",
                "servicecidrs",
                "get list patch update watch",
            ),
            on(
                "networking.k8s.io",
                "servicecidrs/finalizers",
                "patch update",
            ),
            on("networking.k8s.io", "servicecidrs/status", "patch update"),
            on("networking.k8s.io", "ipaddresses", "get list watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:service-controller",
        &[
            on("core", "services", "get list watch"),
            on("core", "services/status", "patch update"),
            on("core", "nodes", "list watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:statefulset-controller",
        &[
            on("core", "pods", "list watch"),
            on("apps", "statefulsets", "get list watch"),
            on("apps", "statefulsets/status", "update"),
            on("apps", "statefulsets/finalizers", "update"),
            on("core", "pods", "create delete get patch update"),
            on(
                "apps",
                "controllerrevisions",
                "create delete get list patch update watch",
            ),
            on("core", "persistentvolumeclaims", "create get list watch"),
            on("core", "persistentvolumeclaims", "delete update"),
            on("core", "pods/finalizers", "update"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:storage-version-migrator-controller",
        &[
            on("*", "*", "list patch"),
            on("apiextensions.k8s.io", "customresourcedefinitions", "get"),
            on(
                "apiextensions.k8s.io",
                "customresourcedefinitions/status",
                "patch",
            ),
            on(
                "storagemigration.k8s.io",
                "storageversionmigrations/status",
                "update",
            ),
        ],
    ),
    role(
        "system:controller:ttl-after-finished-controller",
        &[
            on("batch", "jobs", "delete get list watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:ttl-controller",
        &[
            on("core", "nodes", "list patch update watch"),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:validatingadmissionpolicy-status-controller",
        &[
            on(
                "admissionregistration.k8s.io",
                "validatingadmissionpolicies",
                "get list watch",
            ),
            on(
                "admissionregistration.k8s.io",
                "validatingadmissionpolicies/status",
                "get patch update",
            ),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
    role(
        "system:controller:volumeattributesclass-protection-controller",
        &[
            on("core", "persistentvolumeclaims", "get list watch"),
            on("core", "persistentvolumes", "get list watch"),
            on(
                "storage.k8s.io",
                "volumeattributesclasses",
                "get list update watch",
            ),
            on("core events.k8s.io", "events", "create patch update"),
        ],
    ),
];
