//! Decides which pods to delete. Pure: the current time is an argument.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use super::pod::PodFacts;

/// The taint of nodes that are shut down and do not return.
pub(super) const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The fields of a node that the collector reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeFacts {
    /// True if the node is not ready and has the taint for nodes out of service.
    pub(super) out_of_service: bool,
}

/// The reason for a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// There are too many finished pods.
    Finished,
    /// The pod is being deleted, and its node is out of service.
    OutOfService,
    /// The pod's node does not exist.
    NoNode,
    /// The pod is being deleted, and was never scheduled, so no node stops it.
    NotScheduled,
}

/// The times since which the nodes of pods have been missing.
#[derive(Debug, Default)]
pub(super) struct Missing(HashMap<String, Instant>);

impl Missing {
    /// Returns the nodes of pods that have been missing for `delay`. A node that has just
    /// been created may not have been reported yet.
    pub(super) fn nodes(
        &mut self,
        pods: &[PodFacts],
        exists: impl Fn(&str) -> bool,
        delay: Duration,
        now: Instant,
    ) -> Vec<String> {
        let mut missing = HashMap::new();
        for pod in pods.iter().filter(|pod| !pod.node.is_empty()) {
            if !missing.contains_key(&pod.node) && !exists(&pod.node) {
                let since = self.0.get(&pod.node).copied().unwrap_or(now);
                missing.insert(pod.node.clone(), since);
            }
        }
        self.0 = missing;
        let gone = self
            .0
            .iter()
            .filter(|(_, since)| now.duration_since(**since) >= delay);
        gone.map(|(node, _)| node.clone()).collect()
    }
}

/// Returns the pods to delete, in this order, with the reasons.
pub(super) fn decide<'a>(
    pods: &'a [PodFacts],
    node: impl Fn(&str) -> Option<NodeFacts>,
    gone: &[String],
    most_finished: usize,
) -> Vec<(&'a PodFacts, Cause)> {
    let mut delete = Vec::new();
    let mut finished: Vec<&PodFacts> = pods.iter().filter(|pod| pod.ended).collect();
    let surplus = finished.len().saturating_sub(most_finished);
    // Evicted pods come first, then the oldest.
    finished.sort_by_key(|pod| (!pod.evicted, pod.created, &pod.key.name));
    let finished = finished.into_iter().take(surplus);
    delete.extend(finished.map(|pod| (pod, Cause::Finished)));
    for pod in pods {
        let cause = if pod.deleting && pod.node.is_empty() {
            Cause::NotScheduled
        } else if gone.contains(&pod.node) {
            Cause::NoNode
        } else if pod.deleting && node(&pod.node).is_some_and(|node| node.out_of_service) {
            Cause::OutOfService
        } else {
            continue;
        };
        delete.push((pod, cause));
    }
    delete
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::key::Key;

    fn pod(name: &str, node: &str) -> PodFacts {
        PodFacts {
            key: Key::new("a", name),
            uid: name.into(),
            version: "1".into(),
            node: node.into(),
            ended: false,
            evicted: false,
            deleting: false,
            created: None,
        }
    }

    #[test]
    fn a_node_is_gone_after_it_was_missing_for_the_delay() {
        let (start, delay) = (Instant::now(), Duration::from_secs(40));
        let at = |seconds| start + Duration::from_secs(seconds);
        let pods = [pod("a", "gone"), pod("b", "here"), pod("c", "")];
        let mut missing = Missing::default();
        let exists = |name: &str| name == "here";
        assert!(missing.nodes(&pods, exists, delay, at(0)).is_empty());
        assert!(missing.nodes(&pods, exists, delay, at(39)).is_empty());
        assert_eq!(missing.nodes(&pods, exists, delay, at(40)), ["gone"]);
        // The node appears and disappears again.
        assert!(missing.nodes(&pods, |_| true, delay, at(41)).is_empty());
        assert!(missing.nodes(&pods, exists, delay, at(60)).is_empty());
        assert_eq!(missing.nodes(&pods, exists, delay, at(100)), ["gone"]);
    }

    #[test]
    fn pods_that_nothing_else_deletes() {
        let mut pods = [
            pod("orphan", "gone"),
            pod("pending", ""),
            pod("stopping", ""),
            pod("down", "broken"),
            pod("stuck", "broken"),
            pod("usual", "n"),
        ];
        for at in [2, 4, 5] {
            pods[at].deleting = true;
        }
        let node = |name: &str| {
            let out_of_service = name == "broken";
            (name != "gone").then_some(NodeFacts { out_of_service })
        };
        let found = decide(&pods, node, &["gone".to_owned()], 9);
        let found: Vec<_> = found
            .iter()
            .map(|(pod, cause)| (&*pod.key.name, *cause))
            .collect();
        assert_eq!(
            found,
            [
                ("orphan", Cause::NoNode),
                ("stopping", Cause::NotScheduled),
                ("stuck", Cause::OutOfService)
            ]
        );
    }

    #[test]
    fn evicted_and_old_pods_are_deleted_first() {
        let finished = |name: &str, created: &str, evicted| PodFacts {
            ended: true,
            evicted,
            created: Some(created.parse().unwrap()),
            ..pod(name, "n")
        };
        let pods = [
            finished("a", "2026-01-03T00:00:00Z", false),
            finished("b", "2026-01-01T00:00:00Z", false),
            finished("c", "2026-01-04T00:00:00Z", true),
            pod("d", "n"),
        ];
        let found = decide(&pods, |_| None, &[], 1);
        let names: Vec<_> = found.iter().map(|(pod, _)| &*pod.key.name).collect();
        assert_eq!(names, ["c", "b"]);
        assert!(decide(&pods, |_| None, &[], 3).is_empty());
    }
}
