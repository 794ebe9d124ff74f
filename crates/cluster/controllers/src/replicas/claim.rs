//! Decides which pods belong to a set, and which pods it adopts and releases.

use super::set::Set;
use crate::pod_facts::PodFacts;

/// The pods of a set.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Claims<'a> {
    /// The active pods that the set owns and selects.
    pub(crate) owned: Vec<&'a PodFacts>,
    /// The active pods without a controller that the set selects.
    pub(crate) adopt: Vec<&'a PodFacts>,
    /// The active pods that the set owns and does not select.
    pub(crate) release: Vec<&'a PodFacts>,
    /// The number of pods in deletion that the set owns and selects.
    pub(crate) terminating: usize,
}

/// Sorts the pods that the set owns and the pods without a controller.
///
/// As in Kubernetes, a set in deletion does not adopt or release pods, but counts
/// its pods.
pub(crate) fn claim<'a>(set: &Set, pods: impl IntoIterator<Item = &'a PodFacts>) -> Claims<'a> {
    let mut claims = Claims::default();
    for pod in pods {
        let selected = set.selects(&pod.labels);
        match &pod.owner {
            Some(owner) if owner.uid == set.uid => {
                if pod.is_terminating() && selected {
                    claims.terminating += 1;
                } else if pod.is_active() && selected {
                    claims.owned.push(pod);
                } else if pod.is_active() && !set.deleting {
                    claims.release.push(pod);
                }
            }
            None if selected && pod.is_active() && !set.deleting => claims.adopt.push(pod),
            _ => {}
        }
    }
    claims
}
