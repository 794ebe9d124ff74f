//! The fields of pods and nodes that a resolver reads from their JSON.

use std::{borrow::Cow, collections::BTreeMap};

use jiff::Timestamp;
use longshore_model::meta::COMPLETION_INDEX;
use serde::Deserialize;
use serde_json::Value;

/// The fields of a pod that a resolver reads.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodFacts {
    /// `metadata`.
    pub metadata: PodMeta,
    /// `spec`.
    pub spec: PodSpec,
    /// `status`.
    pub status: PodStatus,
}

/// The fields of `metadata` that a resolver reads.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodMeta {
    /// The pod's name.
    pub name: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's UID.
    pub uid: String,
    /// Set while the pod is being deleted.
    pub deletion_timestamp: Option<Timestamp>,
    /// The pod's labels.
    pub labels: BTreeMap<String, String>,
    /// The pod's annotations.
    pub annotations: BTreeMap<String, String>,
}

/// The fields of `spec` that a resolver reads.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The host name inside the pod.
    pub hostname: Option<String>,
    /// The headless Service whose domain contains the host name.
    pub subdomain: Option<String>,
    /// The node that the pod is scheduled to.
    pub node_name: Option<String>,
    /// The containers.
    pub containers: Vec<Container>,
}

/// The fields of a container that a resolver reads.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Container {
    /// The container's ports.
    pub ports: Vec<ContainerPort>,
    /// The container's resource requirements.
    pub resources: Resources,
}

/// A port of a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerPort {
    /// The port's name.
    pub name: String,
    /// The port number in the pod.
    pub container_port: u16,
    /// The port number on the node, if there is one.
    pub host_port: Option<u16>,
}

/// The resource limits of a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// Resource → quantity.
    pub limits: BTreeMap<String, Value>,
}

/// The fields of `status` that a resolver reads.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// The pod's primary IP address.
    #[serde(rename = "podIP")]
    pub pod_ip: Option<String>,
    /// The pod's IP addresses, one per family. The first is `podIP`.
    #[serde(rename = "podIPs")]
    pub pod_ips: Vec<Ip>,
    /// The primary IP address of the pod's node.
    #[serde(rename = "hostIP")]
    pub host_ip: Option<String>,
    /// The IP addresses of the pod's node.
    #[serde(rename = "hostIPs")]
    pub host_ips: Vec<Ip>,
    /// `PodScheduled`, `Ready` and others.
    pub conditions: Vec<Condition>,
    /// The statuses of the containers.
    pub container_statuses: Vec<ContainerStatus>,
}

/// An entry of `podIPs` or `hostIPs`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Ip {
    /// The address.
    pub ip: String,
}

/// A condition of a pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// The condition's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason in CamelCase.
    pub reason: String,
    /// The human-readable message.
    pub message: String,
}

/// The status of a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ContainerStatus {
    /// The container's state.
    pub state: ContainerState,
}

/// The fields of a container's state that a resolver reads.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// Set while the container is waiting.
    pub waiting: Option<Waiting>,
}

/// Why a container is waiting.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// The reason, for example `ImagePullBackOff`.
    pub reason: String,
}

/// The fields of a node that a resolver reads.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeFacts {
    /// `metadata`.
    pub metadata: NodeMeta,
}

/// The fields of a node's `metadata` that a resolver reads.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeMeta {
    /// The node's name.
    pub name: String,
    /// The node's labels.
    pub labels: BTreeMap<String, String>,
}

/// The stage of a pod's lifecycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Some containers have not started, or the node does not respond.
    Pending,
    /// The pod is running and not ready.
    Unready,
    /// The pod is running and ready.
    Ready,
    /// The pod is being deleted.
    Terminating,
    /// The pod has succeeded or failed.
    Finished,
}

impl PodFacts {
    /// Returns the completion index of an Indexed Job's pod.
    #[must_use]
    pub fn completion_index(&self) -> Option<u32> {
        let meta = &self.metadata;
        let text = meta
            .annotations
            .get(COMPLETION_INDEX)
            .or_else(|| meta.labels.get(COMPLETION_INDEX));
        text?.parse().ok()
    }

    /// Returns the stage of the pod's lifecycle.
    #[must_use]
    pub fn state(&self) -> State {
        let ready = |condition: &Condition| condition.kind == "Ready" && condition.status == "True";
        match self.status.phase.as_str() {
            "Succeeded" | "Failed" => State::Finished,
            _ if self.metadata.deletion_timestamp.is_some() => State::Terminating,
            "Running" if self.status.conditions.iter().any(ready) => State::Ready,
            "Running" => State::Unready,
            _ => State::Pending,
        }
    }

    /// Returns the pod's host name, which its processes see as their own.
    #[must_use]
    pub fn hostname(&self) -> &str {
        let own = self
            .spec
            .hostname
            .as_deref()
            .filter(|name| !name.is_empty());
        own.unwrap_or(&self.metadata.name)
    }

    /// Returns all IP addresses of the pod.
    pub fn ips(&self) -> impl Iterator<Item = &str> {
        let (one, all) = (&self.status.pod_ip, &self.status.pod_ips);
        let listed = all.iter().map(|ip| ip.ip.as_str());
        let single = one.as_deref().filter(|_| all.is_empty());
        listed.chain(single).filter(|ip| !ip.is_empty())
    }

    /// Returns the reason why the pod does not run, if its status has one:
    /// `ImagePullBackOff`, `Unschedulable: 0/3 nodes are available`.
    #[must_use]
    pub fn hindrance(&self) -> Option<Cow<'_, str>> {
        let unscheduled = self
            .status
            .conditions
            .iter()
            .find(|condition| condition.kind == "PodScheduled" && condition.status == "False");
        if let Some(Condition {
            reason, message, ..
        }) = unscheduled
        {
            return Some(match message.as_str() {
                "" => reason.into(),
                message => format!("{reason}: {message}").into(),
            });
        }
        let waiting = self.status.container_statuses.iter();
        let mut waiting = waiting.filter_map(|status| status.state.waiting.as_ref());
        waiting
            .find(|waiting| !matches!(waiting.reason.as_str(), "" | "ContainerCreating"))
            .map(|waiting| waiting.reason.as_str().into())
    }
}
