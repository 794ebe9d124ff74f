//! A pod in the scheduler's state.

use std::{cmp::Reverse, collections::BTreeMap};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};

use super::{choose::Needs, placement::Rules};
use crate::key::Key;

/// The queue of unscheduled pods, sorted by priority and then by age.
pub(super) type QueueKey = (Reverse<i32>, Option<Timestamp>, Key);

#[derive(Debug)]
pub(super) struct KnownPod {
    pub(super) uid: String,
    pub(super) needs: Needs,
    /// The pod's rules about other pods.
    pub(super) rules: Option<Box<Rules>>,
    /// The node that the pod is bound to, or is being bound to.
    pub(super) node: Option<String>,
    pub(super) queue_key: QueueKey,
    /// The reason why the pod could not be scheduled last time, and the time since then.
    pub(super) explained: Option<(String, Option<Timestamp>)>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) started: Option<Timestamp>,
    /// True if pods with a lower priority may be deleted for this pod.
    pub(super) may_preempt: bool,
    /// The node on which pods were deleted for this pod.
    pub(super) nominated: Option<String>,
    /// True if the nomination was requested and has not been observed.
    pub(super) is_nominating: bool,
    pub(super) is_terminating: bool,
    /// True if the pod is being deleted for a pod with a higher priority.
    pub(super) is_leaving: bool,
}

/// A pod that is deleted for a pod with a higher priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VictimPod {
    pub(crate) key: Key,
    pub(crate) uid: String,
}

/// A pod that loses its nomination of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cleared {
    pub(crate) key: Key,
    pub(crate) uid: String,
}

/// Returns true if the scheduler has requested the deletion of the pod.
fn is_preempted(status: &PodStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|one| {
        one.type_ == "DisruptionTarget"
            && one.status == "True"
            && one.reason.as_deref() == Some("PreemptionByScheduler")
    })
}

impl KnownPod {
    /// Reads a pod. `node` is the node that the pod is bound to.
    pub(super) fn of(key: &Key, pod: &Pod, node: Option<String>) -> Self {
        let (metadata, spec, status) = (&pod.metadata, pod.spec.as_ref(), pod.status.as_ref());
        let priority = spec.and_then(|spec| spec.priority).unwrap_or(0);
        let created = metadata.creation_timestamp.as_ref().map(|time| time.0);
        let policy = spec.and_then(|spec| spec.preemption_policy.as_deref());
        let started = status.and_then(|status| status.start_time.as_ref());
        let nominated = status.and_then(|status| status.nominated_node_name.clone());
        let labels = metadata.labels.clone().unwrap_or_default();
        let rules = spec.and_then(|spec| Rules::of(spec, &key.namespace, &labels));
        let is_deleted = metadata.deletion_timestamp.is_some();
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            needs: Needs::of(pod),
            rules: rules.map(Box::new),
            node,
            queue_key: (Reverse(priority), created, key.clone()),
            explained: None,
            labels,
            started: started.map(|time| time.0),
            may_preempt: policy != Some("Never"),
            nominated: nominated.filter(|node| !node.is_empty()),
            is_nominating: false,
            is_terminating: is_deleted,
            is_leaving: is_deleted && status.is_some_and(is_preempted),
        }
    }

    /// Keeps decisions about the pod that have not been observed.
    pub(super) fn keep_decisions_of(&mut self, known: &Self) {
        self.is_leaving |= known.is_leaving;
        if known.is_nominating && self.nominated != known.nominated {
            self.nominated.clone_from(&known.nominated);
            self.is_nominating = true;
        }
    }

    pub(super) fn priority(&self) -> i32 {
        self.queue_key.0.0
    }
}
