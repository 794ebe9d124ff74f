//! Changes of pods by nodes: a node creates only mirror pods, and changes and deletes only pods
//! that are bound to it.

use longshore_builtin::{MIRROR_POD, PodReferences};
use longshore_engine::Error;
use serde::Deserialize;
use serde_json::Value;

use super::{Change, compare, text};
use crate::webhooks::attributes::Operation;

/// Volume sources that do not refer to objects of the API, directly or through the driver.
const LOCAL_SOURCES: &[&str] = &[
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

/// Volume sources that refer to objects, and the kinds of these objects.
const SOURCES: &[(&str, &str)] = &[
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    (
        "ephemeral",
        "persistentvolumeclaims (via ephemeral volumes)",
    ),
    ("azureFile", "secrets (via azureFile volumes)"),
];

/// Sources of projected volumes that refer to objects, and the kinds of these objects.
const PROJECTED_SOURCES: &[(&str, &str)] = &[
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    (
        "serviceAccountToken",
        "serviceaccounts (via projected volumes)",
    ),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

pub(super) fn check(node: &str, change: &Change<'_>) -> Result<(), Error> {
    match change.operation {
        Operation::Create => check_new(node, change),
        Operation::Delete if text(change.old_object, "/spec/nodeName") == node => Ok(()),
        Operation::Delete => Err(change.forbidden(format!(
            "node {node:?} can only delete pods with spec.nodeName set to itself"
        ))),
        Operation::Update | Operation::Connect => {
            let operation = change.operation.as_str();
            Err(change.forbidden(format!(
                "unexpected operation {operation:?}, node {node:?} can only create and delete mirror pods"
            )))
        }
    }
}

fn check_new(node: &str, change: &Change<'_>) -> Result<(), Error> {
    let pod = change.object;
    let facts =
        PodReferences::deserialize(pod).map_err(|error| change.forbidden(error.to_string()))?;
    if !facts.is_mirror() {
        return Err(change.forbidden(format!(
            "pod does not have {MIRROR_POD:?} annotation, node {node:?} can only create mirror pods"
        )));
    }
    let forbidden = |what: &str| Err(change.forbidden(format!("node {node:?} {what}")));
    if facts.node() != node {
        return forbidden("can only create pods with spec.nodeName set to itself");
    }
    let owners = pod["metadata"]["ownerReferences"].as_array();
    let owner = match owners.map(Vec::as_slice).unwrap_or_default() {
        [] => return forbidden("can only create pods with an owner reference set to itself"),
        [owner] => owner,
        _ => return forbidden("can only create pods with a single owner reference set to itself"),
    };
    let is_node = owner["apiVersion"] == "v1" && owner["kind"] == "Node" && owner["name"] == node;
    if !is_node {
        return forbidden("can only create pods with an owner reference set to itself");
    }
    if owner["controller"] != true {
        return forbidden("can only create pods with a controller owner reference set to itself");
    }
    if owner["blockOwnerDeletion"] == true {
        return forbidden("must not set blockOwnerDeletion on an owner reference");
    }
    let stored = change.read("nodes", "", node)?;
    let (expected, uid) = (text(owner, "/uid"), text(&stored, "/metadata/uid"));
    if expected != uid {
        return Err(change.forbidden(format!(
            "node {node} UID mismatch: expected {expected} got {uid}"
        )));
    }
    match reference(&facts) {
        Ok(None) => Ok(()),
        Ok(Some(what)) => forbidden(&format!("can not create pods that reference {what}")),
        Err(problem) => Err(change.forbidden(format!(
            "error checking mirror pod for API references: {problem}"
        ))),
    }
}

/// Returns a kind of objects that a pod refers to; `None` if it does not refer to objects.
fn reference(pod: &PodReferences) -> Result<Option<&'static str>, String> {
    if !pod.service_account().is_empty() {
        return Ok(Some("serviceaccounts"));
    }
    if pod.secrets().next().is_some() {
        return Ok(Some("secrets"));
    }
    if pod.config_maps().next().is_some() {
        return Ok(Some("configmaps"));
    }
    if !pod.resource_claims().is_empty() {
        return Ok(Some("resourceclaims"));
    }
    for volume in pod.volumes() {
        let name = text(volume, "/name");
        let has = |source: &str| volume.get(source).is_some_and(|source| !source.is_null());
        if LOCAL_SOURCES.iter().any(|source| has(source)) {
            continue;
        }
        if let Some((_, what)) = SOURCES.iter().find(|(source, _)| has(source)) {
            return Ok(Some(what));
        }
        if !has("projected") {
            return Err(format!("unknown volume type for volume  {name:?}"));
        }
        let sources = volume["projected"]["sources"].as_array();
        for source in sources.into_iter().flatten() {
            let has = |field: &str| source.get(field).is_some_and(|field| !field.is_null());
            if let Some((_, what)) = PROJECTED_SOURCES.iter().find(|(field, _)| has(field)) {
                return Ok(Some(what));
            }
            if !has("downwardAPI") {
                return Err(format!("unknown source for projected volume {name:?}"));
            }
        }
    }
    Ok(None)
}

pub(super) fn check_status(node: &str, change: &Change<'_>) -> Result<(), Error> {
    if change.operation != Operation::Update {
        return Err(change.unexpected());
    }
    let (old, new) = (change.old_object, change.object);
    let forbidden = |what: &str| Err(change.forbidden(format!("node {node:?} {what}")));
    if text(old, "/spec/nodeName") != node {
        return forbidden("can only update pod status for pods with spec.nodeName set to itself");
    }
    let labels = |pod: &Value| {
        pod["metadata"]["labels"]
            .as_object()
            .cloned()
            .unwrap_or_default()
    };
    if labels(old) != labels(new) {
        return forbidden("cannot update labels through pod status");
    }
    for (field, what) in [
        ("resourceClaimStatuses", "resource claim statues"),
        (
            "extendedResourceClaimStatus",
            "extended resource claim status",
        ),
        (
            "nodeAllocatableResourceClaimStatuses",
            "node allocatable resource claim statuses",
        ),
    ] {
        if !compare::is_same(&old["status"][field], &new["status"][field]) {
            return forbidden(&format!("cannot update {what}"));
        }
    }
    Ok(())
}

pub(super) fn check_eviction(node: &str, change: &Change<'_>) -> Result<(), Error> {
    if change.operation != Operation::Create {
        return Err(change.unexpected());
    }
    let pod = change.read("pods", &change.attributes.namespace, change.name)?;
    match text(&pod, "/spec/nodeName") == node {
        true => Ok(()),
        false => Err(change.forbidden(format!(
            "node {node} can only evict pods with spec.nodeName set to itself"
        ))),
    }
}
