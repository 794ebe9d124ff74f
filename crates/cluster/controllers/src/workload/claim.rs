//! Decides which pods and revisions belong to a workload, and which ones it adopts and releases.

use std::sync::Arc;

use super::{
    kind::{Kind, Workload},
    store::Snapshot,
};
use crate::history::{Revision, sort};
use crate::pod_facts::PodFacts;

/// The pods and revisions of a workload.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Claims {
    /// The pods that the workload owns and selects.
    pub(crate) pods: Vec<Arc<PodFacts>>,
    /// The pods without a controller that the workload selects.
    pub(crate) adopt: Vec<Arc<PodFacts>>,
    /// The pods that the workload owns and does not select.
    pub(crate) release: Vec<Arc<PodFacts>>,
    /// The revisions that the workload owns and selects, from the oldest to the newest.
    pub(crate) revisions: Vec<Arc<Revision>>,
    /// The revisions without a controller that the workload selects.
    pub(crate) adopt_revisions: Vec<Arc<Revision>>,
    /// The revisions that the workload owns and does not select.
    pub(crate) release_revisions: Vec<Arc<Revision>>,
}

impl Claims {
    /// Returns true if an object must be adopted or released.
    pub(crate) fn has_changes(&self) -> bool {
        let pods = !self.adopt.is_empty() || !self.release.is_empty();
        pods || !self.adopt_revisions.is_empty() || !self.release_revisions.is_empty()
    }
}

/// Sorts the workload's own objects and the objects without a controller. As in Kubernetes, a
/// workload in deletion does not adopt or release objects.
pub(crate) fn claim<W: Workload>(snapshot: &Snapshot<W>) -> Claims {
    let workload = &*snapshot.workload;
    let meta = workload.meta();
    let mut claims = Claims::default();
    for pod in &snapshot.pods {
        let selected = meta.selects(&pod.labels) && workload.accepts_name(&pod.key.name);
        match &pod.owner {
            Some(owner) if owner.uid == meta.uid => {
                if selected {
                    claims.pods.push(pod.clone());
                } else if !meta.deleting {
                    claims.release.push(pod.clone());
                }
            }
            None if selected && !pod.deleting && !meta.deleting => claims.adopt.push(pod.clone()),
            _ => {}
        }
    }
    let kind: &Kind = &W::KIND;
    for revision in &snapshot.revisions {
        let selected = meta.selects(&revision.labels);
        if revision.is_owned_by(&meta.uid) {
            if selected {
                claims.revisions.push(revision.clone());
            } else if !meta.deleting && kind.releases_revisions {
                claims.release_revisions.push(revision.clone());
            }
        } else if revision.owner.is_none() && selected && !revision.deleting && !meta.deleting {
            claims.adopt_revisions.push(revision.clone());
        }
    }
    claims.pods.sort_by(|a, b| a.key.cmp(&b.key));
    sort(&mut claims.revisions);
    claims
}
