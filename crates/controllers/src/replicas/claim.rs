//! Which pods belong to a set, which it adopts and which it releases.

use super::{facts::PodFacts, set::Set};

/// What a set has to do with pods.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Claims<'a> {
    /// Active pods that it owns and selects.
    pub(crate) owned: Vec<&'a PodFacts>,
    /// Active pods without a controller that it selects.
    pub(crate) adopt: Vec<&'a PodFacts>,
    /// Active pods that it owns and does not select.
    pub(crate) release: Vec<&'a PodFacts>,
    /// Pods in deletion that it owns and selects.
    pub(crate) terminating: usize,
}

/// Sorts pods: those that the set owns, and those without a controller.
///
/// As in Kubernetes, a set in deletion adopts and releases nothing, but counts
/// the pods that it has.
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
