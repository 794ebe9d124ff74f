//! The names of pods and claims, and the objects that are created for an ordinal.

use serde_json::{Map, Value, json};

use super::{facts::StatefulSet, names::split};
use crate::pod_facts::PodFacts;
use crate::workload::{Kind, REVISION_LABEL, Workload};

pub(super) const NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
pub(super) const INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// Returns the ordinal in the name of a pod.
pub(super) fn ordinal(pod: &PodFacts) -> Option<u32> {
    split(&pod.key.name).map(|(_, ordinal)| ordinal)
}

/// Returns the name of the pod with an ordinal.
pub(super) fn pod_name(set: &StatefulSet, ordinal: u32) -> String {
    format!("{}-{ordinal}", set.meta.key.name)
}

/// A claim of a pod.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Claim<'a> {
    /// The name of the claim's template and of the volume.
    pub(super) volume: &'a str,
    /// The name of the claim.
    pub(super) name: String,
    /// The template.
    pub(super) template: &'a Value,
}

/// Returns the claims of the pod with an ordinal.
pub(super) fn claims(set: &StatefulSet, ordinal: u32) -> Vec<Claim<'_>> {
    let templates = set.spec.volume_claim_templates.iter();
    let claims = templates.map(|template| {
        let volume = template["metadata"]["name"].as_str().unwrap_or_default();
        Claim {
            volume,
            name: format!("{volume}-{}-{ordinal}", set.meta.key.name),
            template,
        }
    });
    claims.collect()
}

/// Returns true if a claim may belong to a pod of the set.
pub(super) fn owns_claim(set: &StatefulSet, claim: &str) -> bool {
    let Some((rest, _)) = split(claim) else {
        return false;
    };
    let templates = set.spec.volume_claim_templates.iter();
    let mut names = templates.filter_map(|template| template["metadata"]["name"].as_str());
    let parent = &set.meta.key.name;
    names.any(|name| rest.strip_prefix(name) == Some(&format!("-{parent}")))
}

/// Returns true if a pod has the labels of its name and ordinal.
pub(super) fn has_identity(pod: &PodFacts) -> bool {
    pod.labels.get(NAME_LABEL) == Some(&pod.key.name)
}

/// Returns true if a pod has the volumes of its claims.
pub(super) fn has_storage(set: &StatefulSet, pod: &PodFacts) -> bool {
    let claims = ordinal(pod).map(|ordinal| claims(set, ordinal));
    claims.into_iter().flatten().all(|claim| {
        let given = pod.claims.get(claim.volume);
        given.is_some_and(|given| *given == claim.name)
    })
}

/// Returns the volumes of the claims.
pub(super) fn volumes(claims: &[Claim<'_>]) -> Vec<Value> {
    let volumes = claims.iter().map(
        |claim| json!({"name": claim.volume, "persistentVolumeClaim": {"claimName": claim.name}}),
    );
    volumes.collect()
}

/// Returns the pod to create.
pub(super) fn pod(set: &StatefulSet, ordinal: u32, template: &Value, revision: &str) -> Value {
    let meta = &template["metadata"];
    let name = pod_name(set, ordinal);
    let mut labels = meta["labels"].clone();
    labels[NAME_LABEL] = name.as_str().into();
    labels[INDEX_LABEL] = ordinal.to_string().into();
    labels[REVISION_LABEL] = revision.into();
    let mut spec = template["spec"].clone();
    spec["hostname"] = name.as_str().into();
    if !set.spec.service_name.is_empty() {
        spec["subdomain"] = set.spec.service_name.as_str().into();
    }
    let claims = claims(set, ordinal);
    if !claims.is_empty() {
        let mut all = volumes(&claims);
        let others = spec["volumes"].as_array().into_iter().flatten();
        let others = others.filter(|volume| claims.iter().all(|one| volume["name"] != one.volume));
        all.extend(others.cloned());
        spec["volumes"] = all.into();
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": format!("{}-", set.meta.key.name),
            "labels": labels,
            "annotations": meta["annotations"],
            "finalizers": meta["finalizers"],
            "ownerReferences": [StatefulSet::KIND.reference(&set.meta)],
        },
        "spec": spec,
    })
}

/// Returns the claim to create.
pub(super) fn claim_object(set: &StatefulSet, claim: &Claim<'_>) -> Value {
    let meta = &claim.template["metadata"];
    let mut labels = meta["labels"].as_object().cloned().unwrap_or_else(Map::new);
    for (key, value) in &set.meta.match_labels {
        labels.insert(key.clone(), value.as_str().into());
    }
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": claim.name,
            "labels": labels,
            "annotations": meta["annotations"],
            "finalizers": meta["finalizers"],
            "ownerReferences": meta["ownerReferences"],
        },
        "spec": claim.template["spec"],
    })
}

/// Returns the reference of a claim to its pod or set.
pub(super) fn claim_owner(kind: &str, name: &str, uid: &str) -> Value {
    let api_version = if kind == "Pod" {
        "v1"
    } else {
        Kind::API_VERSION
    };
    json!({
        "apiVersion": api_version, "kind": kind, "name": name, "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    })
}
