//! The spec of a pod.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Quantities, ResourceNeeds};
use crate::meta::null_as_default;

/// The fields of a pod's `spec`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The containers.
    #[serde(deserialize_with = "null_as_default")]
    pub containers: Vec<Container>,
    /// The init containers, including sidecars.
    #[serde(deserialize_with = "null_as_default")]
    pub init_containers: Vec<Container>,
    /// The host name inside the pod, if it is not the pod's name.
    #[serde(deserialize_with = "null_as_default")]
    pub hostname: String,
    /// The headless Service whose domain contains the host name.
    #[serde(deserialize_with = "null_as_default")]
    pub subdomain: String,
    /// The node that the pod is scheduled to.
    #[serde(deserialize_with = "null_as_default")]
    pub node_name: String,
    /// Labels that the node must have.
    #[serde(deserialize_with = "null_as_default")]
    pub node_selector: BTreeMap<String, String>,
    /// The affinity, unparsed.
    pub affinity: Value,
    /// The tolerated taints.
    #[serde(deserialize_with = "null_as_default")]
    pub tolerations: Vec<Toleration>,
    /// The volumes, unparsed.
    #[serde(deserialize_with = "null_as_default")]
    pub volumes: Vec<Value>,
    /// The service account.
    #[serde(deserialize_with = "null_as_default")]
    pub service_account_name: String,
    /// The priority class.
    #[serde(deserialize_with = "null_as_default")]
    pub priority_class_name: String,
    /// The runtime class.
    #[serde(deserialize_with = "null_as_default")]
    pub runtime_class_name: String,
    /// The Secrets with credentials for image registries.
    #[serde(deserialize_with = "null_as_default")]
    pub image_pull_secrets: Vec<LocalName>,
    /// `Always`, `OnFailure` or `Never`.
    #[serde(deserialize_with = "null_as_default")]
    pub restart_policy: String,
    /// The maximum run time in seconds.
    pub active_deadline_seconds: Option<i64>,
    /// The resources of the pod itself, in addition to its containers' resources.
    #[serde(deserialize_with = "super::quantities")]
    pub overhead: Quantities,
}

/// The name of an object in the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct LocalName {
    /// The name.
    pub name: String,
}

/// A toleration of a taint.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Toleration {
    /// The taint's key; empty tolerates all taints.
    pub key: String,
    /// `Equal` or `Exists`; empty is `Equal`.
    pub operator: String,
    /// The taint's value, for `Equal`.
    pub value: String,
    /// The taint's effect; empty tolerates all effects.
    pub effect: String,
}

/// The fields of a container's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// The container's name.
    pub name: String,
    /// The image.
    #[serde(deserialize_with = "null_as_default")]
    pub image: String,
    /// The command, which replaces the image's entrypoint.
    #[serde(deserialize_with = "null_as_default")]
    pub command: Vec<String>,
    /// `Always` for sidecars.
    #[serde(deserialize_with = "null_as_default")]
    pub restart_policy: String,
    /// The ports.
    #[serde(deserialize_with = "null_as_default")]
    pub ports: Vec<ContainerPort>,
    /// The resource requirements.
    #[serde(deserialize_with = "null_as_default")]
    pub resources: ResourceNeeds,
    /// The environment variables, unparsed.
    #[serde(deserialize_with = "null_as_default")]
    pub env: Vec<Value>,
    /// The sources of environment variables, unparsed.
    #[serde(deserialize_with = "null_as_default")]
    pub env_from: Vec<Value>,
}

/// A port of a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerPort {
    /// The port's name.
    pub name: String,
    /// The port number in the pod. Servers reject numbers that are not ports.
    pub container_port: i32,
    /// The port number on the node, if there is one.
    pub host_port: Option<i32>,
}
