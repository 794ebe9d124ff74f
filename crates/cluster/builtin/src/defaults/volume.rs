//! Defaults of volumes, claims, and the kinds of storage.k8s.io.

use jiff::Timestamp;
use longshore_model::time;
use serde_json::{Value, json};

use crate::json::{self, Object};

/// Sets the phase to `Pending`, and adds the finalizer that the protection
/// controllers remove.
pub(crate) fn on_create(object: &mut Object, finalizer: &str) {
    object.insert("status".into(), json!({"phase": "Pending"}));
    protect(object, finalizer);
}

/// Adds the finalizer that the protection controllers remove.
pub(crate) fn protect(object: &mut Object, finalizer: &str) {
    let metadata = json::child(object, "metadata");
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    match finalizers.as_array_mut() {
        Some(finalizers) if finalizers.iter().any(|own| own == finalizer) => {}
        Some(finalizers) => finalizers.push(finalizer.into()),
        // Validation rejects it.
        None => {}
    }
}

/// Sets the time of the first phase.
pub(crate) fn on_insert(volume: &mut Object, created: &str) {
    let status = json::child(volume, "status");
    status.insert("lastPhaseTransitionTime".into(), created.into());
}

/// Sets the time of the last phase transition, unless the request sets it.
pub(crate) fn on_status(before: &Object, volume: &mut Object, now: Timestamp) {
    const TIME: &str = "lastPhaseTransitionTime";
    let old = before.get("status").and_then(Value::as_object);
    let old_time = old.and_then(|old| old.get(TIME));
    let is_other = json::at(before, "status.phase") != json::at(volume, "status.phase");
    let status = json::child(volume, "status");
    let is_set_by_request = status.get(TIME).is_some_and(|time| Some(time) != old_time);
    if is_other && !is_set_by_request {
        status.insert(TIME.into(), time::seconds(now).into());
    } else if let Some(old_time) = old_time {
        json::default(status, TIME, old_time.clone());
    }
}

pub(crate) fn claim(claim: &mut Object) {
    json::default_text(json::child(claim, "status"), "phase", "Pending");
    let spec = json::child(claim, "spec");
    json::default_text(spec, "volumeMode", "Filesystem");
}

/// Clears an unsupported `dataSource` unless the claim already had a source;
/// old clients rely on that. Newer clients use `dataSourceRef`, which is
/// validated. Sources in other namespaces are not supported.
pub(crate) fn claim_source(before: Option<&Object>, claim: &mut Object) {
    let had = |name: &str| {
        before.is_some_and(|before| json::at(before, &format!("spec.{name}")).is_some())
    };
    let spec = json::child(claim, "spec");
    let elsewhere = |spec: &Object| !json::text(spec, "dataSourceRef.namespace").is_empty();
    if elsewhere(spec) && !had("dataSourceRef") {
        spec.remove("dataSourceRef");
    }
    let newer = had("dataSource") || had("dataSourceRef") || spec.contains_key("dataSourceRef");
    let known = matches!(
        (
            json::text(spec, "dataSource.apiGroup"),
            json::text(spec, "dataSource.kind")
        ),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    );
    if !newer && !known {
        spec.remove("dataSource");
    }
    // `dataSource` and `dataSourceRef` mirror each other.
    if let Some(source) = spec.get("dataSource").cloned() {
        json::default(spec, "dataSourceRef", source);
    } else if let Some(Value::Object(mut source)) = spec.get("dataSourceRef").cloned()
        && json::text(&source, "namespace").is_empty()
    {
        source.remove("namespace");
        spec.insert("dataSource".into(), source.into());
    }
}

pub(crate) fn volume(volume: &mut Object) {
    json::default_text(json::child(volume, "status"), "phase", "Pending");
    let spec = json::child(volume, "spec");
    json::default_text(spec, "persistentVolumeReclaimPolicy", "Retain");
    json::default_text(spec, "volumeMode", "Filesystem");
    super::pod::fill_source(spec);
}

pub(crate) fn storage_class(class: &mut Object) {
    json::default_text(class, "reclaimPolicy", "Delete");
    json::default_text(class, "volumeBindingMode", "Immediate");
}

pub(crate) fn csi_driver(driver: &mut Object) {
    let spec = json::child(driver, "spec");
    json::default(spec, "attachRequired", true);
    json::default(spec, "preventPodSchedulingIfMissing", false);
    json::default(spec, "podInfoOnMount", false);
    json::default(spec, "storageCapacity", false);
    json::default_text(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    json::default(spec, "volumeLifecycleModes", json!(["Persistent"]));
    json::default(spec, "requiresRepublish", false);
    json::default(spec, "seLinuxMount", false);
}
