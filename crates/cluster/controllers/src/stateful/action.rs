//! The observed state of a StatefulSet, and the possible actions.

use std::sync::Arc;

use jiff::Timestamp;

use super::{claims::ClaimFacts, facts::StatefulSet};
use crate::pod_facts::PodFacts;

/// The observed state of a set.
pub(super) struct Observed<'a> {
    pub(super) set: &'a StatefulSet,
    /// The pods of the set.
    pub(super) pods: &'a [Arc<PodFacts>],
    /// The names of the revision before the update and of the revision of the template.
    pub(super) revisions: (&'a str, &'a str),
    pub(super) collisions: i64,
    /// Returns a claim of the set's namespace.
    pub(super) claim: &'a dyn Fn(&str) -> Option<ClaimFacts>,
    pub(super) now: Timestamp,
}

/// A single change.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Create the claims and the pod with this ordinal.
    Create {
        ordinal: u32,
        /// True if the pod gets the revision before the update.
        old_revision: bool,
    },
    /// Create missing claims of this pod, and set their owners.
    Claims(Arc<PodFacts>),
    /// Set the labels, the volumes and the owners of the claims of this pod.
    Repair(Arc<PodFacts>),
    /// Set the owners of the claims of this pod.
    Retain(Arc<PodFacts>),
    /// Delete this pod.
    Delete(Arc<PodFacts>),
    /// Delete this pod to replace it with a pod of the new template.
    Update(Arc<PodFacts>),
}
