//! The status of a pod.

use jiff::Timestamp;
use serde::Deserialize;

use super::Condition;
use crate::meta::null_as_default;

/// The fields of a pod's `status`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    #[serde(deserialize_with = "null_as_default")]
    pub phase: String,
    /// The reason for the pod's phase, in CamelCase.
    #[serde(deserialize_with = "null_as_default")]
    pub reason: String,
    /// A human-readable message about the reason.
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
    /// `PodScheduled`, `Ready` and others.
    #[serde(deserialize_with = "null_as_default")]
    pub conditions: Vec<Condition>,
    /// The statuses of the containers.
    #[serde(deserialize_with = "null_as_default")]
    pub container_statuses: Vec<ContainerStatus>,
    /// The statuses of the init containers.
    #[serde(deserialize_with = "null_as_default")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// The pod's primary IP address.
    #[serde(rename = "podIP", deserialize_with = "null_as_default")]
    pub pod_ip: String,
    /// The pod's IP addresses, one per family. The first is `podIP`.
    #[serde(rename = "podIPs", deserialize_with = "null_as_default")]
    pub pod_ips: Vec<Ip>,
    /// The primary IP address of the pod's node.
    #[serde(rename = "hostIP", deserialize_with = "null_as_default")]
    pub host_ip: String,
    /// The IP addresses of the pod's node.
    #[serde(rename = "hostIPs", deserialize_with = "null_as_default")]
    pub host_ips: Vec<Ip>,
}

/// An entry of `podIPs` or `hostIPs`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Ip {
    /// The address.
    pub ip: String,
}

/// The status of a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// The container's name.
    pub name: String,
    /// The container's state.
    #[serde(deserialize_with = "null_as_default")]
    pub state: ContainerState,
    /// The state before the last restart.
    #[serde(deserialize_with = "null_as_default")]
    pub last_state: ContainerState,
    /// True if the startup probe has succeeded, while the container runs.
    pub started: Option<bool>,
}

/// A container's state: at most one of the three is set.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// Set while the container is waiting.
    pub waiting: Option<Waiting>,
    /// Set while the container is running.
    pub running: Option<Running>,
    /// Set when the container has terminated.
    pub terminated: Option<Terminated>,
}

/// The reason why a container is waiting.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// The reason, for example `ImagePullBackOff`.
    pub reason: String,
    /// A human-readable message about the reason.
    pub message: String,
}

/// A running container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Running {}

/// The termination of a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Terminated {
    /// The exit code; 128 and the signal's number if a signal terminated the process.
    pub exit_code: i32,
    /// The signal that terminated the process, if the runtime reports it.
    pub signal: i32,
    /// The reason, for example `OOMKilled`.
    pub reason: String,
    /// The termination message.
    pub message: String,
    /// The time at which the container terminated.
    pub finished_at: Option<Timestamp>,
}
