//! Defaults of volumes, claims, and the kinds of storage.k8s.io.

use serde_json::json;

use crate::json::{self, Object};

/// A claim or a volume begins as pending. The finalizers that protect those in
/// use are not put on: there is no controller here that would take them off.
pub(super) fn on_create(object: &mut Object) {
    object.insert("status".into(), json!({"phase": "Pending"}));
}

pub(super) fn claim(claim: &mut Object) {
    json::default_text(json::child(claim, "status"), "phase", "Pending");
    let spec = json::child(claim, "spec");
    json::default_text(spec, "volumeMode", "Filesystem");
    for source in ["dataSource", "dataSourceRef"] {
        let other = if source == "dataSource" {
            "dataSourceRef"
        } else {
            "dataSource"
        };
        let local = spec
            .get(source)
            .is_some_and(|source| source.get("namespace").is_none());
        if local && !spec.contains_key(other) {
            let value = spec.get(source).cloned().unwrap_or_default();
            spec.insert(other.to_owned(), value);
        }
    }
}

pub(super) fn volume(volume: &mut Object) {
    json::default_text(json::child(volume, "status"), "phase", "Pending");
    let spec = json::child(volume, "spec");
    json::default_text(spec, "persistentVolumeReclaimPolicy", "Retain");
    json::default_text(spec, "volumeMode", "Filesystem");
    super::pod::fill_source(spec);
}

pub(super) fn storage_class(class: &mut Object) {
    json::default_text(class, "reclaimPolicy", "Delete");
    json::default_text(class, "volumeBindingMode", "Immediate");
}

pub(super) fn csi_driver(driver: &mut Object) {
    let spec = json::child(driver, "spec");
    json::default(spec, "attachRequired", true);
    json::default(spec, "podInfoOnMount", false);
    json::default(spec, "storageCapacity", false);
    json::default_text(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    json::default(spec, "volumeLifecycleModes", json!(["Persistent"]));
    json::default(spec, "requiresRepublish", false);
    json::default(spec, "seLinuxMount", false);
}
