//! Table rows of volumes and of storage.k8s.io.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    Column, age_cell, boolean,
    columns::{AGE, NAME, column},
    count, list, name, or, text,
};

#[rustfmt::skip]
pub(crate) const CLAIM: &[Column] = &[
    NAME,
    column("Status", "string", "", 0, "The phase of the claim's life."),
    column("Volume", "string", "", 0, "The volume it is bound to."),
    column("Capacity", "string", "", 0, "The size of that volume."),
    column("Access Modes", "string", "", 0, "How that volume can be mounted."),
    column("StorageClass", "string", "", 0, "The class of storage it asks for."),
    column("VolumeAttributesClass", "string", "", 0, "The class of attributes it asks for."),
    AGE,
    column("VolumeMode", "string", "", 1, "A file system or a raw device."),
];

#[rustfmt::skip]
pub(crate) const VOLUME: &[Column] = &[
    NAME,
    column("Capacity", "string", "", 0, "Its size."),
    column("Access Modes", "string", "", 0, "How it can be mounted."),
    column("Reclaim Policy", "string", "", 0, "What becomes of it without its claim."),
    column("Status", "string", "", 0, "The phase of the volume's life."),
    column("Claim", "string", "", 0, "The claim it is bound to."),
    column("StorageClass", "string", "", 0, "Its class of storage."),
    column("VolumeAttributesClass", "string", "", 0, "Its class of attributes."),
    column("Reason", "string", "", 0, "Why it is in its phase, in one word."),
    AGE,
    column("VolumeMode", "string", "", 1, "A file system or a raw device."),
];

#[rustfmt::skip]
pub(crate) const CLASS: &[Column] = &[
    NAME,
    column("Provisioner", "string", "", 0, "Who makes the volumes."),
    column("ReclaimPolicy", "string", "", 0, "What becomes of volumes without their claim."),
    column("VolumeBindingMode", "string", "", 0, "When volumes are made and bound."),
    column("AllowVolumeExpansion", "string", "", 0, "Whether volumes can grow."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const MIGRATION: &[Column] = &[
    column("Name", "string", "", 0, "The object's name."),
    column("Resource", "string", "", 0, "The resource whose objects are migrated."),
    column("Status", "string", "", 0, "The state of the migration."),
];

#[rustfmt::skip]
pub(crate) const ATTACHMENT: &[Column] = &[
    NAME,
    column("Attacher", "string", "name", 0, "Who attaches the volume."),
    column("PV", "string", "", 0, "The volume."),
    column("Node", "string", "", 0, "The node."),
    column("Attached", "boolean", "", 0, "Whether it is attached."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const DRIVER: &[Column] = &[
    NAME,
    column("AttachRequired", "boolean", "", 0, "Whether volumes are attached before they are mounted."),
    column("PodInfoOnMount", "boolean", "", 0, "Whether mount requests contain information about the pod."),
    column("StorageCapacity", "boolean", "", 0, "Whether pods are placed by the capacity it tells."),
    column("TokenRequests", "string", "", 0, "Audiences of the tokens it needs."),
    column("RequiresRepublish", "boolean", "", 0, "Whether volumes are published again and again."),
    column("Modes", "string", "", 0, "Lives of volumes it supports."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const NODE: &[Column] = &[
    NAME,
    column("Drivers", "integer", "", 0, "How many drivers the node has."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const ATTRIBUTES: &[Column] = &[
    NAME,
    column("DriverName", "string", "", 0, "The driver it is for."),
    AGE,
];

fn phase(object: &Value) -> Value {
    let deleted = object
        .pointer("/metadata/deletionTimestamp")
        .is_some_and(Value::is_string);
    if deleted {
        "Terminating".into()
    } else {
        text(object, "/status/phase").into()
    }
}

/// Formats access modes, for example `RWO,ROX`.
fn modes(object: &Value, pointer: &str) -> Value {
    let modes = list(object, pointer).iter().filter_map(Value::as_str);
    let short = modes.map(|mode| match mode {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        other => other,
    });
    short.collect::<Vec<_>>().join(",").into()
}

pub(crate) fn claim(object: &Value, now: Timestamp) -> Vec<Value> {
    // Before a claim is bound, it has no size or modes.
    let bound = !text(object, "/spec/volumeName").is_empty();
    let size = if bound {
        match text(object, "/status/capacity/storage") {
            "" => "0",
            size => size,
        }
    } else {
        ""
    };
    let modes = if bound {
        modes(object, "/status/accessModes")
    } else {
        "".into()
    };
    vec![
        name(object),
        phase(object),
        text(object, "/spec/volumeName").into(),
        size.into(),
        modes,
        text(object, "/spec/storageClassName").into(),
        or(text(object, "/spec/volumeAttributesClassName"), "<unset>").into(),
        age_cell(object, now),
        or(text(object, "/spec/volumeMode"), "<unset>").into(),
    ]
}

pub(crate) fn volume(object: &Value, now: Timestamp) -> Vec<Value> {
    let claim = match (
        text(object, "/spec/claimRef/namespace"),
        text(object, "/spec/claimRef/name"),
    ) {
        ("", "") => String::new(),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    vec![
        name(object),
        text(object, "/spec/capacity/storage").into(),
        modes(object, "/spec/accessModes"),
        text(object, "/spec/persistentVolumeReclaimPolicy").into(),
        phase(object),
        claim.into(),
        text(object, "/spec/storageClassName").into(),
        or(text(object, "/spec/volumeAttributesClassName"), "<unset>").into(),
        text(object, "/status/reason").into(),
        age_cell(object, now),
        or(text(object, "/spec/volumeMode"), "<unset>").into(),
    ]
}

pub(crate) fn class(object: &Value, now: Timestamp) -> Vec<Value> {
    let annotations = object.pointer("/metadata/annotations");
    let says = |name: &str| annotations.is_some_and(|all| all[name] == "true");
    let default = says("storageclass.kubernetes.io/is-default-class")
        || says("storageclass.beta.kubernetes.io/is-default-class");
    let name = text(object, "/metadata/name");
    let name = if default {
        format!("{name} (default)")
    } else {
        name.to_owned()
    };
    vec![
        name.into(),
        text(object, "/provisioner").into(),
        or(text(object, "/reclaimPolicy"), "Delete").into(),
        or(text(object, "/volumeBindingMode"), "<unset>").into(),
        boolean(object, "/allowVolumeExpansion"),
        age_cell(object, now),
    ]
}

pub(crate) fn migration(object: &Value, _: Timestamp) -> Vec<Value> {
    let resource = match (
        text(object, "/spec/resource/resource"),
        text(object, "/spec/resource/group"),
    ) {
        (resource, "") => resource.to_owned(),
        (resource, group) => format!("{resource}.{group}"),
    };
    let conditions = object["status"]["conditions"].as_array();
    let mut status = "Unknown";
    for condition in conditions.into_iter().flatten() {
        let kind = text(condition, "/type");
        if text(condition, "/status") == "True"
            && matches!(kind, "Running" | "Failed" | "Succeeded")
        {
            status = kind;
        }
    }
    vec![name(object), resource.into(), status.into()]
}

pub(crate) fn attachment(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        text(object, "/spec/attacher").into(),
        text(object, "/spec/source/persistentVolumeName").into(),
        text(object, "/spec/nodeName").into(),
        boolean(object, "/status/attached"),
        age_cell(object, now),
    ]
}

pub(crate) fn driver(object: &Value, now: Timestamp) -> Vec<Value> {
    let audiences = super::joined(list(object, "/spec/tokenRequests"), "/audience", ",");
    let lives: Vec<&str> = list(object, "/spec/volumeLifecycleModes")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    vec![
        name(object),
        boolean(object, "/spec/attachRequired"),
        boolean(object, "/spec/podInfoOnMount"),
        boolean(object, "/spec/storageCapacity"),
        or(&audiences, "<unset>").into(),
        boolean(object, "/spec/requiresRepublish"),
        or(&lives.join(","), "<none>").into(),
        age_cell(object, now),
    ]
}

pub(crate) fn node(node: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(node),
        count(node, "/spec/drivers").into(),
        age_cell(node, now),
    ]
}

pub(crate) fn attributes(class: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(class),
        text(class, "/driverName").into(),
        age_cell(class, now),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bound_claim_shows_its_volume() {
        let now = Timestamp::UNIX_EPOCH;
        let mut object = json!({"metadata": {"name": "c"}, "spec": {}, "status": {"phase": "Pending",
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}});
        assert_eq!(
            Value::from(claim(&object, now)[..5].to_vec()),
            json!(["c", "Pending", "", "", ""])
        );
        object["spec"]["volumeName"] = "v".into();
        assert_eq!(
            Value::from(claim(&object, now)[1..5].to_vec()),
            json!(["Pending", "v", "1Gi", "RWO,ROX"])
        );
    }
}
