//! Finds the service account and the Secrets that a pod refers to. Pure.

use serde::Deserialize;
use serde_json::Value;

/// The parts of a pod that refer to other objects.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodReferences {
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    service_account_name: Option<String>,
    image_pull_secrets: Value,
    init_containers: Option<Vec<Container>>,
    containers: Option<Vec<Container>>,
    ephemeral_containers: Option<Vec<Container>>,
    volumes: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    env: Value,
    env_from: Value,
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
    /// The name of the service account; empty if it is not set.
    #[must_use]
    pub fn service_account(&self) -> &str {
        let account = self.spec.service_account_name.as_deref();
        account.unwrap_or_default()
    }

    fn volumes(&self) -> &[Value] {
        items(&self.spec.volumes)
    }

    /// The sources of the projected volumes.
    pub fn projected_sources(&self) -> impl Iterator<Item = &Value> {
        let volumes = self.volumes().iter();
        volumes.flat_map(|volume| items(&volume["projected"]["sources"]))
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

    /// The names of Secrets in `envFrom` and `env` of the containers.
    fn in_environments(&self) -> impl Iterator<Item = &str> {
        self.containers().flat_map(|container| {
            let all = items(&container.env_from).iter();
            let all = all.map(|source| &source["secretRef"]["name"]);
            let one = items(&container.env).iter();
            let one = one.map(|variable| &variable["valueFrom"]["secretKeyRef"]["name"]);
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
            .chain(self.in_environments())
            .chain(in_volumes)
            .chain(projected)
            .filter(|name| !name.is_empty())
    }
}

/// The items of a list; empty if the value is not a list.
fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}
