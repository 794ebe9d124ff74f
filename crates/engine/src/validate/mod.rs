//! Validation: the errors of each kind, with the field paths and messages of
//! Kubernetes.

mod address;
mod autoscaling;
mod certificate;
mod config;
mod cron;
mod definition;
mod endpoints;
mod field_value;
mod immutable;
mod ingress;
mod job;
mod job_status;
mod limit_range;
mod meta;
mod network_policy;
mod node;
mod node_selector;
mod pem;
mod pod;
mod policy;
mod quota;
mod rbac;
mod registration;
mod selector;
mod service;
mod stateful_set;
mod storage;
mod volume;
mod volume_source;
mod webhook;
mod workload;
mod zero_values;

use longshore_model::{KindInfo, StatusCause};

pub(crate) use meta::deletion;

use crate::{
    cause::Cause,
    json::{self, Object},
};

/// Validates an object on its own.
pub(crate) fn object(kind: &KindInfo, object: &Object) -> Vec<StatusCause> {
    let mut causes = meta::object(kind, object);
    match (&*kind.gvk.group, &*kind.gvk.kind) {
        ("", "Pod") => pod::object(object, &mut causes),
        ("", "Service") => service::object(object, &mut causes),
        ("", "Secret") => config::secret(object, &mut causes),
        ("", "ConfigMap") => config::config_map(object, &mut causes),
        ("", "Event") => event(object, &mut causes),
        ("", "Endpoints") => endpoints::endpoints(object, &mut causes),
        ("", "LimitRange") => limit_range::object(object, &mut causes),
        ("", "Namespace") => node::namespace(object, &mut causes),
        ("", "Node") => node::node(object, &mut causes),
        ("", "PersistentVolume") => volume::volume(object, &mut causes),
        ("", "PersistentVolumeClaim") => volume::claim(object, &mut causes),
        ("", "PodTemplate") => pod::template(object, "template", &mut causes),
        ("", "ReplicationController") => workload::replication_controller(object, &mut causes),
        ("", "ResourceQuota") => quota::object(object, &mut causes),
        ("apps", "ControllerRevision") => workload::controller_revision(object, &mut causes),
        ("apps", "DaemonSet") => workload::daemon_set(object, &mut causes),
        ("apps", "Deployment") => workload::deployment(object, &mut causes),
        ("apps", "ReplicaSet") => workload::replica_set(object, &mut causes),
        ("apps", "StatefulSet") => stateful_set::object(object, &mut causes),
        ("batch", "CronJob") => cron::object(object, &mut causes),
        ("batch", "Job") => job::object(object, &mut causes),
        ("admissionregistration.k8s.io", _) => webhook::configuration(object, &mut causes),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            definition::object(object, &mut causes);
        }
        ("apiregistration.k8s.io", "APIService") => {
            registration::api_service(object, &mut causes);
        }
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::object(object, &mut causes),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            certificate::request(object, &mut causes);
        }
        ("node.k8s.io", "RuntimeClass") => registration::runtime_class(object, &mut causes),
        ("discovery.k8s.io", "EndpointSlice") => endpoints::slice(object, &mut causes),
        ("networking.k8s.io", "IPAddress") => network_policy::ip_address(object, &mut causes),
        ("networking.k8s.io", "Ingress") => ingress::object(object, &mut causes),
        ("networking.k8s.io", "IngressClass") => ingress::class(object, &mut causes),
        ("networking.k8s.io", "NetworkPolicy") => network_policy::policy(object, &mut causes),
        ("networking.k8s.io", "ServiceCIDR") => network_policy::service_cidr(object, &mut causes),
        ("policy", "PodDisruptionBudget") => policy::budget(object, &mut causes),
        ("rbac.authorization.k8s.io", "ClusterRole") => rbac::cluster_role(object, &mut causes),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => {
            rbac::binding(object, &["ClusterRole"], &mut causes);
        }
        ("rbac.authorization.k8s.io", "Role") => rbac::role(object, &mut causes),
        ("rbac.authorization.k8s.io", "RoleBinding") => {
            rbac::binding(object, &["Role", "ClusterRole"], &mut causes);
        }
        ("scheduling.k8s.io", "PriorityClass") => policy::priority(object, &mut causes),
        ("storage.k8s.io", "CSIDriver") => storage::driver(object, &mut causes),
        ("storage.k8s.io", "CSINode") => storage::node(object, &mut causes),
        ("storage.k8s.io", "CSIStorageCapacity") => storage::capacity(object, &mut causes),
        ("storage.k8s.io", "StorageClass") => storage::class(object, &mut causes),
        ("storage.k8s.io", "VolumeAttachment") => storage::attachment(object, &mut causes),
        ("storage.k8s.io", "VolumeAttributesClass") => {
            storage::attributes_class(object, &mut causes);
        }
        ("coordination.k8s.io", "Lease") => lease(object, &mut causes),
        _ => {}
    }
    zero_values::show_as_zero(kind, &mut causes);
    causes
}

/// Validates a namespace when its finalizers are updated.
pub(crate) fn finalized(kind: &KindInfo, namespace: &Object) -> Vec<StatusCause> {
    let mut causes = meta::object(kind, namespace);
    node::finalized_namespace(namespace, &mut causes);
    causes
}

/// Rules that apply only to new objects.
pub(crate) fn new_object(kind: &KindInfo, object: &Object) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    match (&*kind.gvk.group, &*kind.gvk.kind) {
        ("admissionregistration.k8s.io", _) => webhook::new_object(object, &mut causes),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::target(object, &mut causes),
        ("networking.k8s.io", "Ingress") => ingress::new_object(object, &mut causes),
        _ => {}
    }
    causes
}

/// Validates a change.
pub(crate) fn change(kind: &KindInfo, before: &Object, after: &Object) -> Vec<StatusCause> {
    let mut causes = meta::change(before, after);
    match (&*kind.gvk.group, &*kind.gvk.kind) {
        ("", "Pod") => pod::change(before, after, &mut causes),
        ("", "Service") => service::change(before, after, &mut causes),
        ("", "Secret") => config::secret_change(before, after, &mut causes),
        ("", "ConfigMap") => config::config_map_change(before, after, &mut causes),
        ("", "Node") => node::node_change(before, after, &mut causes),
        ("", "PersistentVolume") => volume::volume_change(before, after, &mut causes),
        ("", "PersistentVolumeClaim") => volume::claim_change(before, after, &mut causes),
        ("", "ResourceQuota") => quota::change(before, after, &mut causes),
        ("apps", "ControllerRevision") => {
            immutable::fixed(before, after, &["data"], &mut causes);
        }
        ("apps", "DaemonSet" | "Deployment" | "ReplicaSet") => {
            immutable::fixed(before, after, &["spec.selector"], &mut causes);
        }
        ("apps", "StatefulSet") => stateful_set::change(before, after, &mut causes),
        ("batch", "Job") => job::change(before, after, &mut causes),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            definition::change(before, after, &mut causes);
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            autoscaling::change(before, after, &mut causes);
        }
        ("node.k8s.io", "RuntimeClass") => {
            immutable::fixed_without_value(before, after, &["handler"], &mut causes);
        }
        ("discovery.k8s.io", "EndpointSlice") => {
            immutable::fixed_without_value(before, after, &["addressType"], &mut causes);
        }
        ("networking.k8s.io", "IPAddress") => {
            immutable::fixed_without_value(before, after, &["spec.parentRef"], &mut causes);
        }
        ("networking.k8s.io", "IngressClass") => {
            immutable::fixed(before, after, &["spec.controller"], &mut causes);
        }
        ("networking.k8s.io", "ServiceCIDR") => {
            network_policy::service_cidr_change(before, after, &mut causes);
        }
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => {
            rbac::binding_change(before, after, &mut causes);
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            policy::priority_change(before, after, &mut causes);
        }
        ("storage.k8s.io", "CSIDriver") => storage::driver_change(before, after, &mut causes),
        ("storage.k8s.io", "CSINode") => storage::node_change(before, after, &mut causes),
        ("storage.k8s.io", "CSIStorageCapacity") => {
            let fixed = ["nodeTopology", "storageClassName"];
            immutable::fixed(before, after, &fixed, &mut causes);
        }
        ("storage.k8s.io", "StorageClass") => storage::class_change(before, after, &mut causes),
        ("storage.k8s.io", "VolumeAttachment") => {
            immutable::fixed_without_value(before, after, &["spec"], &mut causes);
        }
        ("storage.k8s.io", "VolumeAttributesClass") => {
            storage::attributes_class_change(before, after, &mut causes);
        }
        _ => {}
    }
    causes
}

/// Validates metadata that a status update changed.
pub(crate) fn metadata(kind: &KindInfo, before: &Object, after: &Object) -> Vec<StatusCause> {
    let mut causes = meta::object(kind, after);
    causes.extend(meta::change(before, after));
    causes
}

/// Validates a change of the status.
pub(crate) fn status(kind: &KindInfo, before: &Object, after: &Object) -> Vec<StatusCause> {
    const REPLICAS: &[&str] = &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    const ROLLED: &[&str] = &["updatedReplicas", "readyReplicas", "availableReplicas"];
    const ORDERED: &[&str] = &[
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ];
    const DAEMONS: &[&str] = &[
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
        "observedGeneration",
    ];
    let mut causes = Vec::new();
    let mut replicas = |parts, others| workload::status(after, parts, others, &mut causes);
    match (&*kind.gvk.group, &*kind.gvk.kind) {
        ("", "ReplicationController") | ("apps", "ReplicaSet") => {
            replicas(REPLICAS, &["observedGeneration"]);
        }
        ("apps", "Deployment") => {
            let others = [
                "observedGeneration",
                "unavailableReplicas",
                "collisionCount",
            ];
            replicas(ROLLED, &others);
        }
        ("apps", "StatefulSet") => replicas(ORDERED, &["observedGeneration", "collisionCount"]),
        ("apps", "DaemonSet") => replicas(&[], DAEMONS),
        ("", "Pod") => pod::status::change(before, after, &mut causes),
        ("batch", "Job") => job_status::change(before, after, &mut causes),
        ("", "Namespace") => node::namespace_status(after, &mut causes),
        ("policy", "PodDisruptionBudget") => policy::budget_status(after, &mut causes),
        ("apiregistration.k8s.io", "APIService") => {
            registration::api_service_status(after, &mut causes);
        }
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::status(after, &mut causes),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            certificate::status(before, after, false, &mut causes);
        }
        _ => {}
    }
    causes
}

/// Validates the approval of a certificate signing request.
pub(crate) fn approval(before: &Object, after: &Object) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    certificate::status(before, after, true, &mut causes);
    causes
}

/// An event must be in the namespace of the object that it refers to.
fn event(event: &Object, causes: &mut Vec<StatusCause>) {
    if crate::events::is_timed(event) {
        return crate::events::validate_event_time(event, causes);
    }
    let namespace = json::text(event, "metadata.namespace");
    let about = json::text(event, "involvedObject.namespace");
    if about != namespace && !(about.is_empty() && namespace == "default") {
        causes.push(Cause::invalid(
            "involvedObject.namespace",
            about,
            "does not match event.namespace",
        ));
    }
}

fn lease(lease: &Object, causes: &mut Vec<StatusCause>) {
    for field in ["spec.leaseDurationSeconds", "spec.leaseTransitions"] {
        let least = i64::from(field == "spec.leaseDurationSeconds");
        if let Some(number) = json::number(lease, field).filter(|number| *number < least) {
            let rule = if least == 1 {
                "must be greater than 0"
            } else {
                "must be greater than or equal to 0"
            };
            causes.push(Cause::invalid(field, number, rule));
        }
    }
}
