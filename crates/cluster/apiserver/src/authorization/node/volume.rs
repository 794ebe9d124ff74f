//! The objects that a PersistentVolume refers to. Pure.

use serde::Deserialize;
use serde_json::Value;

use super::target::{Target, Used};

/// A volume that is bound to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) claim: Target,
    /// The Secrets that the node of a pod with the volume needs.
    pub(super) secrets: Vec<Target>,
}

/// The sources that refer to a Secret, and the field with the reference.
const SECRET_FIELDS: &[(&str, &str)] = &[
    ("cephfs", "secretRef"),
    ("cinder", "secretRef"),
    ("flexVolume", "secretRef"),
    ("rbd", "secretRef"),
    ("scaleIO", "secretRef"),
    ("iscsi", "secretRef"),
    ("storageos", "secretRef"),
    ("csi", "nodePublishSecretRef"),
    ("csi", "nodeStageSecretRef"),
    ("csi", "nodeExpandSecretRef"),
];

/// The sources whose references without a namespace refer to the claim's namespace.
const IN_NAMESPACE_OF_CLAIM: &[&str] = &["cephfs", "flexVolume", "rbd", "scaleIO", "iscsi"];

impl Volume {
    /// Reads a volume; `None` if it is not bound to a claim.
    pub(super) fn read(json: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Facts {
            spec: Value,
        }
        let facts: Result<Facts, _> = serde_json::from_slice(json);
        let spec = facts.ok()?.spec;
        let claim = spec.get("claimRef").filter(|claim| claim.is_object())?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text(&claim["namespace"]), text(&claim["name"]));
        let mut secrets = Vec::new();
        let mut add = |namespace: &str, name: &str| {
            let secret = Target::new(Used::Secret, namespace, name);
            if !name.is_empty() && !secrets.contains(&secret) {
                secrets.push(secret);
            }
        };
        for (source, field) in SECRET_FIELDS {
            let Some(reference) = spec.get(source).and_then(|source| source.get(field)) else {
                continue;
            };
            let own = text(&reference["namespace"]);
            let defaults = own.is_empty() && IN_NAMESPACE_OF_CLAIM.contains(source);
            let place = if defaults { &namespace } else { &own };
            add(place, &text(&reference["name"]));
        }
        if let Some(file) = spec.get("azureFile") {
            let own = text(&file["secretNamespace"]);
            let place = if own.is_empty() { &namespace } else { &own };
            add(place, &text(&file["secretName"]));
        }
        Some(Self {
            claim: Target::new(Used::Claim, &namespace, &name),
            secrets,
        })
    }
}
