//! The objects that a pod uses, for the permissions of its node. Pure.

use longshore_builtin::PodReferences;
use serde_json::Value;

use super::target::{Target, Used};

/// The name of the claim of a volume; `None` if the volume does not have one.
pub(crate) fn claim_of(volume: &Value, pod: &str) -> Option<String> {
    if let Some(claim) = volume
        .get("persistentVolumeClaim")
        .filter(|v| v.is_object())
    {
        return Some(claim["claimName"].as_str()?.to_owned());
    }
    volume.get("ephemeral").filter(|v| v.is_object())?;
    let name = volume["name"].as_str()?;
    Some(format!("{pod}-{name}"))
}

/// The objects that a pod uses, and its node.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PodUse {
    pub(super) node: Box<str>,
    /// Without duplicates.
    pub(super) targets: Vec<Target>,
}

impl PodUse {
    /// Returns the objects that a pod uses; `None` if it is not bound to a node. The list is empty
    /// for a mirror pod, so that a node cannot give itself permissions.
    pub(super) fn of(facts: &PodReferences, namespace: &str, pod: &str) -> Option<Self> {
        if facts.node().is_empty() {
            return None;
        }
        let mut targets: Vec<Target> = Vec::new();
        let mut add = |kind, name: &str| {
            let target = Target::new(kind, namespace, name);
            if !targets.contains(&target) {
                targets.push(target);
            }
        };
        if !facts.is_mirror() {
            if !facts.service_account().is_empty() {
                add(Used::ServiceAccount, facts.service_account());
            }
            facts.secrets().for_each(|name| add(Used::Secret, name));
            facts
                .config_maps()
                .for_each(|name| add(Used::ConfigMap, name));
            for volume in facts.volumes() {
                if let Some(claim) = claim_of(volume, pod) {
                    add(Used::Claim, &claim);
                }
            }
            facts
                .claims_of_devices()
                .for_each(|name| add(Used::ResourceClaim, name));
        }
        Some(Self {
            node: facts.node().into(),
            targets,
        })
    }
}
