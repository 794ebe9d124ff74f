//! Pods.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Condition, PodSpec, PodStatus};
use crate::{
    ObjectMeta,
    meta::{COMPLETION_INDEX, null_as_default},
};

/// The fields of a pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodFacts {
    /// `metadata`.
    pub metadata: ObjectMeta,
    /// `spec`.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: PodSpec,
    /// `status`.
    #[serde(deserialize_with = "null_as_default")]
    pub status: PodStatus,
}

/// The stage of a pod's lifecycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
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
        self.completion_index_text()?.parse().ok()
    }

    /// Returns the completion index as the pod has it, which may not be a number.
    #[must_use]
    pub fn completion_index_text(&self) -> Option<&str> {
        let meta = &self.metadata;
        let text = meta
            .annotations
            .get(COMPLETION_INDEX)
            .or_else(|| meta.labels.get(COMPLETION_INDEX));
        text.map(String::as_str)
    }

    /// Returns the stage of the pod's lifecycle.
    #[must_use]
    pub fn stage(&self) -> Stage {
        let ready = |condition: &Condition| condition.is_true("Ready");
        match self.status.phase.as_str() {
            "Succeeded" | "Failed" => Stage::Finished,
            _ if self.metadata.deletion_timestamp.is_some() => Stage::Terminating,
            "Running" if self.status.conditions.iter().any(ready) => Stage::Ready,
            "Running" => Stage::Unready,
            _ => Stage::Pending,
        }
    }

    /// Returns the pod's host name, which its processes see as their own.
    #[must_use]
    pub fn hostname(&self) -> &str {
        match self.spec.hostname.as_str() {
            "" => &self.metadata.name,
            own => own,
        }
    }

    /// Returns all IP addresses of the pod.
    pub fn ips(&self) -> impl Iterator<Item = &str> {
        let (one, all) = (&self.status.pod_ip, &self.status.pod_ips);
        let listed = all.iter().map(|ip| ip.ip.as_str());
        let single = Some(one.as_str()).filter(|_| all.is_empty());
        listed.chain(single).filter(|ip| !ip.is_empty())
    }

    /// Returns the reason why the pod does not run, if its status has one:
    /// `ImagePullBackOff`, `Unschedulable: 0/3 nodes are available`.
    #[must_use]
    pub fn blocking_reason(&self) -> Option<Cow<'_, str>> {
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
