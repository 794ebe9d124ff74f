//! Finds the objects that a pod refers to. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::MIRROR_POD;

/// The parts of a pod that refer to other objects.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodReferences {
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

/// The volume sources that refer to a Secret, and the path of the Secret's name.
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

impl PodReferences {
    /// The node that the pod is bound to; empty if the pod is not bound.
    #[must_use]
    pub fn node(&self) -> &str {
        self.spec.node_name.as_deref().unwrap_or_default()
    }

    /// The name of the service account; empty if it is not set.
    #[must_use]
    pub fn service_account(&self) -> &str {
        let account = self.spec.service_account_name.as_deref();
        account.unwrap_or_default()
    }

    /// Returns true if a node created the pod from a file.
    #[must_use]
    pub fn is_mirror(&self) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        annotations.is_some_and(|all| all.contains_key(MIRROR_POD))
    }

    /// The volumes.
    #[must_use]
    pub fn volumes(&self) -> &[Value] {
        items(&self.spec.volumes)
    }

    /// The sources of the projected volumes.
    pub fn projected_sources(&self) -> impl Iterator<Item = &Value> {
        let volumes = self.volumes().iter();
        volumes.flat_map(|volume| items(&volume["projected"]["sources"]))
    }

    /// The entries of `spec.resourceClaims`.
    #[must_use]
    pub fn resource_claims(&self) -> &[Value] {
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
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
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
    pub fn config_maps(&self) -> impl Iterator<Item = &str> {
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
    pub fn claims_of_devices(&self) -> impl Iterator<Item = &str> {
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

/// The items of a list; empty if the value is not a list.
fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}
