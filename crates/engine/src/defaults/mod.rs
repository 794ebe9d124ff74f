//! Defaults of the API server. `on_create` and `on_update` apply the rules of a
//! kind before validation; `fill` sets the fields that are still missing and is
//! idempotent.

mod autoscaling;
mod certificate;
mod definition;
mod job;
mod limits;
mod network;
mod pod;
mod service;
mod volume;
mod webhook;
mod workload;

use jiff::Timestamp;
use longshore_model::KindInfo;
use serde_json::{Value, json};

use crate::{
    facts::{self, SentStatus},
    json::{self, Object},
};

/// Prepares a new object for creation.
pub(crate) fn on_create(kind: &KindInfo, object: &mut Object) {
    let facts = facts::of(&kind.gvk.group, &kind.gvk.kind);
    if kind.has_subresource("status") && facts.sent_status == SentStatus::Dropped {
        object.insert("status".into(), json!({}));
    }
    match (&*kind.gvk.group, &*kind.gvk.kind) {
        ("", "Namespace") => {
            let finalizers = json::child(object, "spec")
                .entry("finalizers")
                .or_insert_with(|| json!([]));
            if let Some(list) = finalizers.as_array_mut()
                && !list.iter().any(|name| name == "kubernetes")
            {
                list.push("kubernetes".into());
            }
            object.insert("status".into(), json!({"phase": "Active"}));
        }
        ("", "Pod") => pod::on_create(object),
        ("", "Service") => {
            object.insert("status".into(), json!({"loadBalancer": {}}));
        }
        ("batch", "Job") => job::on_create(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition::on_create(object),
        ("apiregistration.k8s.io", "APIService") => webhook::on_create(object),
        ("", "PersistentVolume") => volume::on_create(object),
        ("", "PersistentVolumeClaim") => {
            volume::on_create(object);
            volume::claim_source(None, object);
        }
        _ => {}
    }
}

/// Resets fields that an update cannot change.
pub(crate) fn on_update(kind: &KindInfo, before: &Object, object: &mut Object) {
    match (&*kind.gvk.group, &*kind.gvk.kind) {
        ("", "Namespace") => json::copy(before, object, "spec"),
        ("", "PersistentVolumeClaim") => volume::claim_source(Some(before), object),
        ("", "Pod") => pod::on_update(before, object),
        ("", "Service") => service::on_update(before, object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition::on_update(object),
        ("certificates.k8s.io", "CertificateSigningRequest") => json::copy(before, object, "spec"),
        _ => {}
    }
}

/// Derives fields from the difference to the previous state, after all defaults
/// are set.
pub(crate) fn derive_fields(kind: &KindInfo, before: Option<&Object>, object: &mut Object) {
    if kind.gvk.group == "apps" && kind.gvk.kind == "DaemonSet" {
        workload::set_template_generation(before, object);
    }
}

/// Makes redundant status fields consistent.
pub(crate) fn on_status(kind: &KindInfo, before: &Object, object: &mut Object, now: Timestamp) {
    match (&*kind.gvk.group, &*kind.gvk.kind) {
        ("", "Pod") => pod::on_status(before, object),
        ("", "Service") => service::on_status(object),
        ("", "PersistentVolume") => volume::on_status(before, object, now),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            certificate::keep_decisions(before, object);
            certificate::set_transition_times(before, object, now);
        }
        _ => {}
    }
}

/// Prepares the approval of a certificate signing request: takes the conditions
/// from the request and sets their timestamps.
pub(crate) fn on_approval(before: &Object, object: &mut Object, now: Timestamp) {
    certificate::keep_all_but_conditions(before, object);
    certificate::set_transition_times(before, object, now);
}

/// Sets missing fields to their defaults.
pub(crate) fn fill(kind: &KindInfo, object: &mut Object) {
    match (&*kind.gvk.group, &*kind.gvk.kind) {
        ("", "Namespace") => {
            let name = json::text(object, "metadata.name").to_owned();
            let labels = json::child(json::child(object, "metadata"), "labels");
            labels.insert("kubernetes.io/metadata.name".into(), name.into());
        }
        ("", "Pod") => pod::fill(object),
        ("", "Node") => {
            node_networks(json::child(object, "spec"));
            let status = json::child(object, "status");
            if let Some(capacity) = status.get("capacity").cloned() {
                json::default(status, "allocatable", capacity);
            }
        }
        ("", "Endpoints") => network::endpoints(object),
        ("", "LimitRange") => limits::limit_range(object),
        ("", "PersistentVolume") => volume::volume(object),
        ("", "PersistentVolumeClaim") => volume::claim(object),
        ("", "PodTemplate") => {
            pod::fill_spec(json::child(json::child(object, "template"), "spec"));
        }
        ("", "ReplicationController") => workload::replication_controller(object),
        ("", "Secret") => secret(object),
        ("", "Service") => service::fill(object),
        ("", "Event") => event(object),
        ("apps", "DaemonSet") => workload::daemon_set(object),
        ("apps", "Deployment") => workload::deployment(object),
        ("apps", "ReplicaSet") => workload::replica_set(object),
        ("apps", "StatefulSet") => workload::stateful_set(object),
        ("batch", "CronJob") => workload::cron_job(object),
        ("batch", "Job") => job::fill(object),
        ("admissionregistration.k8s.io", _) => webhook::fill(&kind.gvk.kind, object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition::fill(object),
        ("apiregistration.k8s.io", "APIService") => webhook::service(json::child(object, "spec")),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::fill(object),
        ("discovery.k8s.io", "EndpointSlice") => network::slice(object),
        ("networking.k8s.io", "IngressClass") => network::ingress_class(object),
        ("networking.k8s.io", "NetworkPolicy") => network::policy(object),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => {
            limits::binding(object);
        }
        ("scheduling.k8s.io", "PriorityClass") => limits::priority_class(object),
        ("storage.k8s.io", "CSIDriver") => volume::csi_driver(object),
        ("storage.k8s.io", "StorageClass") => volume::storage_class(object),
        ("coordination.k8s.io", "Lease") => {
            json::child(object, "spec");
        }
        _ => {}
    }
}

/// Keeps `podCIDR` and the first entry of `podCIDRs` equal; if they differ,
/// `podCIDR` wins.
fn node_networks(spec: &mut Object) {
    let list = spec.get("podCIDRs").and_then(Value::as_array);
    let first = list.and_then(|list| list.first()).cloned();
    let first = first.filter(|first| *first != "");
    match (json::text(spec, "podCIDR"), first) {
        ("", Some(first)) => {
            spec.insert("podCIDR".into(), first);
        }
        (alone, first) if !alone.is_empty() && first.as_ref().is_none_or(|it| it != alone) => {
            let list = json!([alone]);
            spec.insert("podCIDRs".into(), list);
        }
        _ => {}
    }
}

/// Encodes `stringData` as base64 and moves it to `data`.
fn secret(object: &mut Object) {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    json::default_text(object, "type", "Opaque");
    if let Some(Value::Object(texts)) = object.remove("stringData") {
        let data = json::child(object, "data");
        for (name, text) in texts {
            let text = STANDARD.encode(text.as_str().unwrap_or_default());
            data.insert(name, text.into());
        }
    }
}

/// Adds the fields that every Event has.
fn event(object: &mut Object) {
    for name in ["involvedObject", "source"] {
        json::child(object, name);
    }
    json::default(object, "reportingComponent", "");
    json::default(object, "reportingInstance", "");
}
