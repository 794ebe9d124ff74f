//! What a resolver needs to know of pods and nodes; reads from their JSON.

use std::{borrow::Cow, collections::BTreeMap};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// Label and annotation that carry the index of an Indexed Job's pod.
pub const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// What a resolver needs to know of a pod.
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

/// The part of `metadata` that matters here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodMeta {
    /// The pod's name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its uid.
    pub uid: String,
    /// Set when it is being deleted.
    pub deletion_timestamp: Option<Timestamp>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// The part of `spec` that matters here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// Host name inside the pod.
    pub hostname: Option<String>,
    /// The headless Service under which the host name is known.
    pub subdomain: Option<String>,
    /// The node it was placed on.
    pub node_name: Option<String>,
    /// The containers.
    pub containers: Vec<Container>,
}

/// The part of a container that matters here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Container {
    /// The ports it names.
    pub ports: Vec<ContainerPort>,
    /// Requests and limits.
    pub resources: Resources,
}

/// A port of a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerPort {
    /// Its name.
    pub name: String,
    /// Its number in the pod.
    pub container_port: u16,
    /// Its number on the node, when it has one.
    pub host_port: Option<u16>,
}

/// Resource limits of a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// Resource → quantity.
    pub limits: BTreeMap<String, Value>,
}

/// The part of `status` that matters here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// The pod's own address.
    #[serde(rename = "podIP")]
    pub pod_ip: Option<String>,
    /// Its addresses, one a family; the first is `podIP`.
    #[serde(rename = "podIPs")]
    pub pod_ips: Vec<Ip>,
    /// The address of its node.
    #[serde(rename = "hostIP")]
    pub host_ip: Option<String>,
    /// The addresses of its node.
    #[serde(rename = "hostIPs")]
    pub host_ips: Vec<Ip>,
    /// `PodScheduled`, `Ready` and others.
    pub conditions: Vec<Condition>,
    /// How its containers are.
    pub container_statuses: Vec<ContainerStatus>,
}

/// An address in a list of such.
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
    /// Its name.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in a word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

/// How a container is.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ContainerStatus {
    /// Its state.
    pub state: ContainerState,
}

/// A container's state, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// What it waits for.
    pub waiting: Option<Waiting>,
}

/// What a container waits for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// As in `ImagePullBackOff`.
    pub reason: String,
}

/// What a resolver needs to know of a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeFacts {
    /// `metadata`.
    pub metadata: NodeMeta,
}

/// The part of a node's `metadata` that matters here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeMeta {
    /// The node's name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// Where in its life a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Not all its containers have been started, or its node does not answer.
    Pending,
    /// It runs and has not reported itself ready.
    Unready,
    /// It runs and is ready.
    Ready,
    /// It is being deleted.
    Terminating,
    /// It has succeeded or failed.
    Finished,
}

impl PodFacts {
    /// The completion index of an Indexed Job's pod.
    #[must_use]
    pub fn completion_index(&self) -> Option<u32> {
        let meta = &self.metadata;
        let text = meta
            .annotations
            .get(COMPLETION_INDEX)
            .or_else(|| meta.labels.get(COMPLETION_INDEX));
        text?.parse().ok()
    }

    /// Where in its life it is.
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

    /// The name by which it knows itself: its host name.
    #[must_use]
    pub fn hostname(&self) -> &str {
        let own = self
            .spec
            .hostname
            .as_deref()
            .filter(|name| !name.is_empty());
        own.unwrap_or(&self.metadata.name)
    }

    /// All its own addresses.
    pub fn ips(&self) -> impl Iterator<Item = &str> {
        let (one, all) = (&self.status.pod_ip, &self.status.pod_ips);
        let listed = all.iter().map(|ip| ip.ip.as_str());
        let alone = one.as_deref().filter(|_| all.is_empty());
        listed.chain(alone).filter(|ip| !ip.is_empty())
    }

    /// What keeps it from running, as far as it is told: `ImagePullBackOff`,
    /// `Unschedulable: 0/3 nodes are available`.
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
