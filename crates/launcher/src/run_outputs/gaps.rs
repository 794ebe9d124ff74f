//! The tasks whose last attempt has left no outputs: without a report, files of an earlier attempt,
//! or none, would be taken for those of the last one.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use longshore_client::{Cluster, Item};
use longshore_diagnosis::{
    evidence::RunPod as _,
    names::{self, Task},
};
use longshore_model::facts::PodFacts;

use super::TaskChoice;
use crate::{outputs::Manifest, run::Run};

/// A task without the outputs of its last attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The task: `worker/1`.
    pub task: String,
    /// What is missing.
    pub kind: GapKind,
}

/// What is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapKind {
    /// The task has ended, and there are no files.
    Missing,
    /// The files are those of an earlier attempt.
    Earlier {
        /// When they were collected.
        collected: Timestamp,
    },
    /// The task has ended, but the files are those that it had while it was running.
    Interrupted {
        /// When they were collected.
        collected: Timestamp,
    },
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = &self.task;
        match self.kind {
            GapKind::Missing => write!(
                f,
                "no outputs of {task}: it was killed, or they could not be kept; the end of its log, or cluster.log of the embedded cluster, says why; run it again"
            ),
            GapKind::Earlier { collected } => write!(
                f,
                "the outputs of {task} are those of an earlier attempt, which ended at {collected:.0}: those of the last attempt were not kept; the end of its log says why"
            ),
            GapKind::Interrupted { collected } => write!(
                f,
                "{task} ended without its last outputs, for example because it was killed: these are its files of {collected:.0}"
            ),
        }
    }
}

/// The attempts of a run's tasks that request outputs, as they were before the outputs are read:
/// those of an attempt that had ended must be there.
pub(super) struct Attempts(BTreeMap<Task, Vec<PodFacts>>);

impl Attempts {
    pub(super) async fn list(
        cluster: &Cluster,
        run: &Run,
        choice: &TaskChoice,
    ) -> Result<Self, longshore_client::Error> {
        let mut attempts: BTreeMap<Task, Vec<PodFacts>> = BTreeMap::new();
        for pod in run.list_pods(cluster).await? {
            let pod: PodFacts = Item::typed(&pod)?;
            let requests = pod.metadata.annotations.contains_key(names::OUTPUTS);
            let task = pod
                .task()
                .filter(|task| requests && choice.has(&task.role, task.index));
            if let Some(task) = task {
                attempts.entry(task).or_default().push(pod);
            }
        }
        Ok(Self(attempts))
    }

    /// Compares them with the lists of outputs.
    pub(super) fn gaps<'a>(&self, found: impl Iterator<Item = &'a Manifest>) -> Vec<Gap> {
        let found: BTreeMap<(&str, u32), &Manifest> = found
            .map(|manifest| ((manifest.role.as_str(), manifest.index), manifest))
            .collect();
        let gaps = self.0.iter().filter_map(|(task, pods)| {
            let manifest = found.get(&(task.role.as_str(), task.index));
            let kind = kind(pods, manifest.copied())?;
            let task = format!("{}/{}", task.role, task.index);
            Some(Gap { task, kind })
        });
        gaps.collect()
    }
}

/// What is missing of a task with these pods.
fn kind(pods: &[PodFacts], manifest: Option<&Manifest>) -> Option<GapKind> {
    let has_ended = |pod: &&PodFacts| {
        pod.has_started() && matches!(pod.status.phase.as_str(), "Succeeded" | "Failed")
    };
    let is_running = pods.iter().any(|pod| pod.has_started() && !has_ended(&pod));
    let last = pods
        .iter()
        .filter(has_ended)
        .max_by_key(|pod| (pod.metadata.creation_timestamp, pod.finished_at()))?;
    let Some(manifest) = manifest else {
        return (!is_running).then_some(GapKind::Missing);
    };
    let collected = manifest.collected;
    if !manifest.ended {
        let is_over = !is_running || manifest.pod == last.metadata.name;
        return is_over.then_some(GapKind::Interrupted { collected });
    }
    let is_earlier = manifest.pod != last.metadata.name
        && last
            .finished_at()
            .is_some_and(|finished| collected < finished);
    (is_earlier && !is_running).then_some(GapKind::Earlier { collected })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn pod(name: &str, created: u32, phase: &str) -> PodFacts {
        let finished = format!("2026-01-01T00:{:02}:00Z", created + 5);
        let state = match phase {
            "Running" => json!({"running": {}}),
            _ => json!({"terminated": {"exitCode": 1, "finishedAt": finished}}),
        };
        serde_json::from_value(json!({
            "metadata": {"name": name, "creationTimestamp": format!("2026-01-01T00:{created:02}:00Z")},
            "spec": {"containers": [{"name": "main"}]},
            "status": {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]},
        }))
        .unwrap()
    }

    fn manifest(pod: &str, minute: u32, ended: bool) -> Manifest {
        serde_json::from_value(json!({
            "version": 1, "run": "r", "role": "main", "index": 0, "pod": pod, "podUid": "",
            "collected": format!("2026-01-01T00:{minute:02}:00Z"), "ended": ended,
            "files": [], "leftOut": [],
        }))
        .unwrap()
    }

    #[test]
    fn the_outputs_of_the_last_attempt_are_complete() {
        let failed = [pod("a", 0, "Failed"), pod("b", 10, "Failed")];
        assert_eq!(kind(&failed, Some(&manifest("b", 15, true))), None);
        // Its pod was deleted after it had ended.
        assert_eq!(kind(&failed, Some(&manifest("c", 30, true))), None);
        assert_eq!(kind(&[pod("a", 0, "Running")], None), None);
        assert_eq!(kind(&[], None), None);
    }

    #[test]
    fn outputs_of_other_attempts_are_reported() {
        let failed = [pod("a", 0, "Failed"), pod("b", 10, "Failed")];
        assert_eq!(kind(&failed, None), Some(GapKind::Missing));
        let first = manifest("a", 5, true);
        let collected = first.collected;
        assert_eq!(
            kind(&failed, Some(&first)),
            Some(GapKind::Earlier { collected })
        );
        let running = manifest("b", 12, false);
        let collected = running.collected;
        assert_eq!(
            kind(&failed, Some(&running)),
            Some(GapKind::Interrupted { collected })
        );
        // The next attempt runs.
        let next = [pod("a", 0, "Failed"), pod("b", 10, "Running")];
        assert_eq!(kind(&next, Some(&running)), None);
    }
}
