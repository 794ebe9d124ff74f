//! Decides which pods with an old template are replaced.

use std::{collections::BTreeMap, sync::Arc};

use super::action::{Action, Observed};
use crate::pod_facts::PodFacts;

/// Returns the pods to delete, from the highest ordinal, so that no more than
/// `maxUnavailable` pods are unavailable. Pods below the partition keep their template.
pub(super) fn update(seen: &Observed<'_>, desired: &BTreeMap<u32, Arc<PodFacts>>) -> Vec<Action> {
    let spec = &seen.set.spec;
    let (_, revision) = seen.revisions;
    let available =
        |pod: &PodFacts| !pod.deleting && pod.is_available(spec.min_ready_seconds, seen.now);
    let is_old = |pod: &PodFacts| !pod.deleting && pod.revision() != revision;
    let healthy = desired.values().filter(|pod| available(pod)).count();
    let replicas = usize::try_from(spec.replicas).unwrap_or(usize::MAX);
    let unavailable = replicas.saturating_sub(healthy);
    let budget = spec.max_unavailable().saturating_sub(unavailable);
    let first = spec.start().saturating_add(spec.partition().unwrap_or(0));
    let old = desired.range(first..).rev().map(|(_, pod)| pod);
    let old: Vec<&Arc<PodFacts>> = old.filter(|pod| is_old(pod)).collect();
    let pods: Vec<&Arc<PodFacts>> = if spec.is_parallel() {
        // Deleting pods that are not available does not make more pods unavailable.
        let (good, bad): (Vec<_>, Vec<_>) = old.into_iter().partition(|pod| available(pod));
        bad.into_iter()
            .chain(good.into_iter().take(budget))
            .collect()
    } else {
        old.into_iter().take(budget).collect()
    };
    pods.into_iter().cloned().map(Action::Update).collect()
}
