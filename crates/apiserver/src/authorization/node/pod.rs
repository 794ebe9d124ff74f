//! The fields of a pod that matter for the permissions of its node: what the pod refers
//! to. Pure.

use std::collections::BTreeMap;

use longshore_builtin::MIRROR_POD;
use serde::Deserialize;
use serde_json::Value;

use super::target::{Target, Used};

/// A pod, as far as its references to other objects.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodFacts {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
    service_account_name: Option<String>,
    image_pull_secrets: Value,
    init_containers: Option<Vec<Container>>,
    containers: Option<Vec<Container>>,
    ephemeral_containers: Option<Vec<Container>>,
    volumes: Value,
    resource_claims: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    env: Value,
    env_from: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    resource_claim_statuses: Value,
    extended_resource_claim_status: Value,
}

/// The volume sources with a reference to a Secret, and the path of its name.
const SECRET_PATHS: &[(&str, &str)] = &[
    ("azureFile", "/secretName"),
    ("cephfs", "/secretRef/name"),
    ("cinder", "/secretRef/name"),
    ("flexVolume", "/secretRef/name"),
    ("rbd", "/secretRef/name"),
    ("secret", "/secretName"),
    ("scaleIO", "/secretRef/name"),
    ("iscsi", "/secretRef/name"),
    ("storageos", "/secretRef/name"),
    ("csi", "/nodePublishSecretRef/name"),
];

impl PodFacts {
    /// The node that the pod is bound to; empty if there is none.
    pub(crate) fn node(&self) -> &str {
        self.spec.node_name.as_deref().unwrap_or_default()
    }

    /// The service account; empty if there is none.
    pub(crate) fn service_account(&self) -> &str {
        let account = self.spec.service_account_name.as_deref();
        account.unwrap_or_default()
    }

    /// Whether a node created the pod from a file.
    pub(crate) fn is_mirror(&self) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        annotations.is_some_and(|all| all.contains_key(MIRROR_POD))
    }

    /// The volumes.
    pub(crate) fn volumes(&self) -> &[Value] {
        items(&self.spec.volumes)
    }

    /// The sources of the projected volumes.
    pub(crate) fn projected_sources(&self) -> impl Iterator<Item = &Value> {
        let volumes = self.volumes().iter();
        volumes.flat_map(|volume| items(&volume["projected"]["sources"]))
    }

    /// The entries of `spec.resourceClaims`.
    pub(crate) fn resource_claims(&self) -> &[Value] {
        items(&self.spec.resource_claims)
    }

    fn containers(&self) -> impl Iterator<Item = &Container> {
        let spec = &self.spec;
        let lists = [
            &spec.init_containers,
            &spec.containers,
            &spec.ephemeral_containers,
        ];
        lists.into_iter().flatten().flatten()
    }

    /// The names in `envFrom` and `env` of the containers.
    fn in_environments(&self, from: &str, key: &str) -> impl Iterator<Item = &str> {
        self.containers().flat_map(move |container| {
            let all = items(&container.env_from).iter();
            let all = all.map(move |source| &source[from]["name"]);
            let one = items(&container.env).iter();
            let one = one.map(move |variable| &variable["valueFrom"][key]["name"]);
            all.chain(one).filter_map(Value::as_str)
        })
    }

    /// The names of the Secrets that the pod refers to.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let for_images = items(&self.spec.image_pull_secrets).iter();
        let for_images = for_images.filter_map(|secret| secret["name"].as_str());
        let in_volumes = self.volumes().iter().flat_map(|volume| {
            let sources = SECRET_PATHS.iter();
            sources.filter_map(|(source, path)| volume.get(source)?.pointer(path)?.as_str())
        });
        let projected = self.projected_sources();
        let projected = projected.filter_map(|source| source["secret"]["name"].as_str());
        for_images
            .chain(self.in_environments("secretRef", "secretKeyRef"))
            .chain(in_volumes)
            .chain(projected)
            .filter(|name| !name.is_empty())
    }

    /// The names of the ConfigMaps that the pod refers to.
    pub(crate) fn config_maps(&self) -> impl Iterator<Item = &str> {
        let in_volumes = self.volumes().iter();
        let in_volumes = in_volumes.filter_map(|volume| volume["configMap"]["name"].as_str());
        let projected = self.projected_sources();
        let projected = projected.filter_map(|source| source["configMap"]["name"].as_str());
        self.in_environments("configMapRef", "configMapKeyRef")
            .chain(in_volumes)
            .chain(projected)
            .filter(|name| !name.is_empty())
    }

    /// The names of the ResourceClaims of the pod that exist.
    fn claims_of_devices(&self) -> impl Iterator<Item = &str> {
        let status = &self.status;
        let own =
            self.resource_claims().iter().filter_map(|claim| {
                match claim["resourceClaimName"].as_str() {
                    Some(name) => Some(name),
                    None if claim["resourceClaimTemplateName"].is_string() => {
                        let mut made = items(&status.resource_claim_statuses).iter();
                        let made = made.find(|made| made["name"] == claim["name"])?;
                        made["resourceClaimName"].as_str()
                    }
                    None => None,
                }
            });
        let extended = status.extended_resource_claim_status["resourceClaimName"].as_str();
        own.chain(extended).filter(|name| !name.is_empty())
    }
}

/// The name of the claim of a volume; `None` if it has none.
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

/// The items of a list; none if the value is another one.
pub(super) fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// What a pod uses, and its node.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PodUse {
    pub(super) node: Box<str>,
    /// Without duplicates.
    pub(super) targets: Vec<Target>,
}

impl PodUse {
    /// What a pod uses; `None` if it is not bound to a node. A mirror pod uses nothing, so
    /// that no node can give itself permissions.
    pub(super) fn of(facts: &PodFacts, namespace: &str, pod: &str) -> Option<Self> {
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
