//! The table of properties by group. Kinds that are not listed use [`PLAIN`].

use super::{Facts, Generation, NameRule, PLAIN, SentStatus};

const ADMISSION: Facts = Facts {
    group: "admissionregistration.k8s.io",
    generation: Generation::Content,
    unconditional_update: false,
    ..PLAIN
};

const APPS: Facts = Facts {
    group: "apps",
    generation: Generation::Spec,
    ..PLAIN
};

const NETWORKING: Facts = Facts {
    group: "networking.k8s.io",
    ..PLAIN
};

const RBAC: Facts = Facts {
    group: "rbac.authorization.k8s.io",
    name: NameRule::PathSegment,
    create_on_update: true,
    ..PLAIN
};

const STORAGE: Facts = Facts {
    group: "storage.k8s.io",
    unconditional_update: false,
    ..PLAIN
};

pub(super) static TABLE: &[Facts] = &[
    Facts {
        kind: "Endpoints",
        create_on_update: true,
        ..PLAIN
    },
    Facts {
        kind: "Event",
        fields: &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        create_on_update: true,
        ..PLAIN
    },
    Facts {
        kind: "LimitRange",
        create_on_update: true,
        ..PLAIN
    },
    Facts {
        kind: "Namespace",
        fields: &["status.phase"],
        name: NameRule::Label,
        ..PLAIN
    },
    Facts {
        kind: "Node",
        fields: &["spec.unschedulable"],
        sent_status: SentStatus::Kept,
        ..PLAIN
    },
    Facts {
        kind: "Pod",
        fields: &[
            "spec.nodeName",
            "status.phase",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        generation: Generation::Spec,
        // Status updates of an old kubelet would remove the owner references.
        status_metadata: &["labels", "annotations", "finalizers"],
        ..PLAIN
    },
    Facts {
        kind: "PodTemplate",
        generation: Generation::Content,
        ..PLAIN
    },
    Facts {
        kind: "ReplicationController",
        fields: &["status.replicas"],
        generation: Generation::Spec,
        orphan_by_default: true,
        ..PLAIN
    },
    Facts {
        kind: "Secret",
        fields: &["type"],
        ..PLAIN
    },
    Facts {
        kind: "Service",
        fields: &["spec.clusterIP", "spec.type"],
        name: NameRule::ServiceLabel,
        ..PLAIN
    },
    Facts {
        kind: "ControllerRevision",
        generation: Generation::Absent,
        ..APPS
    },
    Facts {
        kind: "DaemonSet",
        ..APPS
    },
    Facts {
        kind: "Deployment",
        generation: Generation::SpecAndAnnotations,
        status_metadata: &["annotations", "finalizers", "ownerReferences"],
        ..APPS
    },
    Facts {
        kind: "ReplicaSet",
        ..APPS
    },
    Facts {
        kind: "StatefulSet",
        ..APPS
    },
    Facts {
        kind: "MutatingWebhookConfiguration",
        ..ADMISSION
    },
    Facts {
        kind: "ValidatingWebhookConfiguration",
        ..ADMISSION
    },
    Facts {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        generation: Generation::Spec,
        unconditional_update: false,
        ..PLAIN
    },
    Facts {
        group: "apiregistration.k8s.io",
        kind: "APIService",
        name: NameRule::PathSegment,
        unconditional_update: false,
        status_metadata: &[],
        ..PLAIN
    },
    Facts {
        group: "autoscaling",
        kind: "HorizontalPodAutoscaler",
        generation: Generation::Spec,
        ..PLAIN
    },
    Facts {
        group: "batch",
        kind: "CronJob",
        generation: Generation::Spec,
        ..PLAIN
    },
    Facts {
        group: "batch",
        kind: "Job",
        fields: &["status.successful"],
        generation: Generation::Spec,
        orphan_by_default: true,
        ..PLAIN
    },
    Facts {
        group: "certificates.k8s.io",
        kind: "CertificateSigningRequest",
        fields: &["spec.signerName"],
        name: NameRule::PathSegment,
        has_fixed_spec: true,
        ..PLAIN
    },
    Facts {
        group: "coordination.k8s.io",
        kind: "Lease",
        unconditional_update: false,
        create_on_update: true,
        ..PLAIN
    },
    Facts {
        group: "discovery.k8s.io",
        kind: "EndpointSlice",
        generation: Generation::Content,
        ..PLAIN
    },
    Facts {
        kind: "IPAddress",
        name: NameRule::Address,
        ..NETWORKING
    },
    Facts {
        kind: "Ingress",
        generation: Generation::Spec,
        ..NETWORKING
    },
    Facts {
        kind: "IngressClass",
        generation: Generation::Spec,
        ..NETWORKING
    },
    Facts {
        kind: "NetworkPolicy",
        generation: Generation::Spec,
        ..NETWORKING
    },
    Facts {
        kind: "ServiceCIDR",
        status_metadata: &[],
        ..NETWORKING
    },
    Facts {
        group: "node.k8s.io",
        kind: "RuntimeClass",
        unconditional_update: false,
        create_on_update: true,
        ..PLAIN
    },
    Facts {
        group: "policy",
        kind: "PodDisruptionBudget",
        generation: Generation::Spec,
        unconditional_update: false,
        ..PLAIN
    },
    Facts {
        kind: "ClusterRole",
        ..RBAC
    },
    Facts {
        kind: "ClusterRoleBinding",
        ..RBAC
    },
    Facts {
        kind: "Role",
        ..RBAC
    },
    Facts {
        kind: "RoleBinding",
        ..RBAC
    },
    Facts {
        group: "scheduling.k8s.io",
        kind: "PriorityClass",
        generation: Generation::Fixed,
        ..PLAIN
    },
    Facts {
        kind: "CSIDriver",
        generation: Generation::SpecFromNone,
        ..STORAGE
    },
    Facts {
        kind: "CSINode",
        ..STORAGE
    },
    Facts {
        kind: "CSIStorageCapacity",
        ..STORAGE
    },
    Facts {
        kind: "VolumeAttachment",
        status_metadata: &[],
        ..STORAGE
    },
];
