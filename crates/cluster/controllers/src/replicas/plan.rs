//! Decides how many pods a set creates or deletes.

use jiff::Timestamp;

use super::{order::surplus, set::Set};
use crate::pod_facts::PodFacts;

/// The maximum number of pods to create or delete in one reconciliation, as in
/// Kubernetes.
pub(crate) const BURST: usize = 500;

/// The action for the number of pods.
#[derive(Debug, PartialEq)]
pub(crate) enum Scale<'a> {
    /// The number of pods is right.
    Keep,
    /// Create this number of pods.
    Create(usize),
    /// Delete these pods.
    Delete(Vec<&'a PodFacts>),
}

/// Decides from the active pods of the set. A set in deletion does nothing, because
/// the garbage collector handles its pods.
pub(crate) fn scale<'a>(
    set: &Set,
    active: &[&'a PodFacts],
    related: &[&PodFacts],
    now: Timestamp,
) -> Scale<'a> {
    if set.deleting || active.len() == set.replicas {
        return Scale::Keep;
    }
    if active.len() < set.replicas {
        return Scale::Create((set.replicas - active.len()).min(BURST));
    }
    let count = (active.len() - set.replicas).min(BURST);
    Scale::Delete(surplus(active, related, count, now))
}

/// Returns the sizes of the batches for creating pods. The first batch is one pod and each batch
/// doubles, so that an error that affects all pods costs few requests.
pub(crate) fn batches(count: usize) -> impl Iterator<Item = usize> {
    let (mut left, mut next) = (count, 1);
    std::iter::from_fn(move || {
        let size = next.min(left);
        (left, next) = (left - size, size * 2);
        (size > 0).then_some(size)
    })
}
