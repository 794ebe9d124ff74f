//! The tasks whose last attempt has left no outputs. Without a report, users could mistake files of
//! an earlier attempt for the last attempt's, or expect files that do not exist.

use std::{collections::BTreeMap, fmt, time::Duration};

use jiff::Timestamp;
use longshore_client::{Cluster, Item, LogOptions};
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
    /// The kind of the gap.
    pub kind: GapKind,
    /// The reason why the task could not upload its outputs, as it has reported.
    pub reason: Option<String>,
}

/// The kind of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapKind {
    /// The task has ended, but without files.
    Missing,
    /// The files are from an earlier attempt.
    Earlier {
        /// The time when the files were collected.
        collected: Timestamp,
    },
    /// The task has ended, but the files were collected while it was running.
    Interrupted {
        /// The time when the files were collected.
        collected: Timestamp,
    },
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = &self.task;
        let reason = self.reason.as_deref();
        match (self.kind, reason) {
            (GapKind::Missing, Some(reason)) => {
                write!(f, "no outputs of {task}: they were not uploaded: {reason}")
            }
            (GapKind::Missing, None) => write!(
                f,
                "no outputs of {task}: it was killed, or they could not be kept; the end of its log, or cluster.log of the embedded cluster, says why; run it again"
            ),
            (GapKind::Earlier { collected }, Some(reason)) => write!(
                f,
                "the outputs of {task} are those of an earlier attempt, which ended at {collected:.0}: those of the last attempt were not uploaded: {reason}"
            ),
            (GapKind::Interrupted { collected }, Some(reason)) => write!(
                f,
                "{task} ended without its last outputs, which were not uploaded: {reason}; these are its files of {collected:.0}"
            ),
            (GapKind::Earlier { collected }, None) => write!(
                f,
                "the outputs of {task} are those of an earlier attempt, which ended at {collected:.0}: those of the last attempt were not kept; the end of its log says why"
            ),
            (GapKind::Interrupted { collected }, None) => write!(
                f,
                "{task} ended without its last outputs, for example because it was killed: these are its files of {collected:.0}"
            ),
        }
    }
}

/// The number of logs to read, and of their last lines.
const LOGS: usize = 16;
const LOG_LINES: u64 = 30;
const LOG_BYTES: u64 = 64 * 1024;
const LOG_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of tasks in one sentence.
const NAMED: usize = 3;

/// The reasons why no task could upload its outputs, if at least one task has reported a reason.
pub(super) fn reasons(gaps: &[Gap]) -> Option<String> {
    let known: Vec<String> = gaps
        .iter()
        .filter(|gap| gap.reason.is_some())
        .map(ToString::to_string)
        .collect();
    let named = known.iter().take(NAMED).cloned().collect::<Vec<_>>();
    let more = match gaps.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!("; and of {more} more"),
    };
    (!named.is_empty()).then(|| format!("{}{more}", named.join("; ")))
}

/// The attempts of a run's tasks that request outputs, as they were before the outputs are read.
/// The outputs of attempts that had ended must exist.
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

    /// Compares the attempts with the lists of outputs, and reads the reasons for gaps from the
    /// logs of the first tasks.
    pub(super) async fn gaps<'a>(
        &self,
        cluster: &Cluster,
        namespace: &str,
        found: impl Iterator<Item = &'a Manifest>,
    ) -> Vec<Gap> {
        let mut gaps = self.compare(found);
        let reading = gaps.iter_mut().take(LOGS).map(async |(gap, pod)| {
            let log = end_of_log(cluster, namespace, pod).await;
            gap.reason = log.and_then(|log| reason(&log));
        });
        futures::future::join_all(reading).await;
        gaps.into_iter().map(|(gap, _)| gap).collect()
    }

    /// The gaps, and the last attempts that have ended.
    fn compare<'a>(&self, found: impl Iterator<Item = &'a Manifest>) -> Vec<(Gap, &PodFacts)> {
        let found: BTreeMap<(&str, u32), &Manifest> = found
            .map(|manifest| ((manifest.role.as_str(), manifest.index), manifest))
            .collect();
        let gaps = self.0.iter().filter_map(|(task, pods)| {
            let manifest = found.get(&(task.role.as_str(), task.index));
            let kind = kind(pods, manifest.copied())?;
            let task = format!("{}/{}", task.role, task.index);
            let gap = Gap {
                task,
                kind,
                reason: None,
            };
            Some((gap, last_ended(pods)?))
        });
        gaps.collect()
    }
}

fn has_ended(pod: &PodFacts) -> bool {
    pod.has_started() && matches!(pod.status.phase.as_str(), "Succeeded" | "Failed")
}

/// The last attempt that has ended.
fn last_ended(pods: &[PodFacts]) -> Option<&PodFacts> {
    pods.iter()
        .filter(|pod| has_ended(pod))
        .max_by_key(|pod| (pod.metadata.creation_timestamp, pod.finished_at()))
}

/// The reason why a task could not upload its outputs: the line in its log that the bootstrap
/// writes before it ends.
fn reason(log: &str) -> Option<String> {
    let lines = log.lines().rev();
    let mut found = lines.filter_map(|line| line.strip_prefix(names::OUTPUTS_LOST));
    found.next().map(str::to_owned)
}

/// The end of the log of a task. `None` without permission to read it.
async fn end_of_log(cluster: &Cluster, namespace: &str, pod: &PodFacts) -> Option<String> {
    use futures::TryStreamExt as _;
    let options = LogOptions {
        container: Some(pod.main_name().to_owned()),
        tail_lines: Some(LOG_LINES),
        limit_bytes: Some(LOG_BYTES),
        uid: Some(pod.metadata.uid.clone()),
        ..LogOptions::default()
    };
    let pods = cluster.pods().in_namespace(namespace).ok()?;
    let reading = async {
        let mut log = std::pin::pin!(pods.logs(&pod.metadata.name, &options).await.ok()?);
        let mut text = Vec::new();
        while let Some(chunk) = log.try_next().await.ok()? {
            text.extend_from_slice(&chunk);
        }
        Some(String::from_utf8_lossy(&text).into_owned())
    };
    tokio::time::timeout(LOG_TIMEOUT, reading).await.ok()?
}

/// The kind of the gap of a task with these pods. `None` without a gap.
fn kind(pods: &[PodFacts], manifest: Option<&Manifest>) -> Option<GapKind> {
    let is_running = pods.iter().any(|pod| pod.has_started() && !has_ended(pod));
    let last = last_ended(pods)?;
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
        // The pod was deleted after it had ended.
        assert_eq!(kind(&failed, Some(&manifest("c", 30, true))), None);
        assert_eq!(kind(&[pod("a", 0, "Running")], None), None);
        assert_eq!(kind(&[], None), None);
    }

    #[test]
    fn the_reason_is_the_last_one_in_the_log() {
        let lost = names::OUTPUTS_LOST;
        let log = format!("own words\n{lost}first\n{lost}the store is full\nlast\n");
        assert_eq!(reason(&log).as_deref(), Some("the store is full"));
        assert_eq!(reason("longshore: other"), None);
        let gap = |kind, reason: Option<&str>| Gap {
            task: "main/0".to_owned(),
            kind,
            reason: reason.map(str::to_owned),
        };
        let missing = gap(GapKind::Missing, Some("the store is full"));
        assert_eq!(
            missing.to_string(),
            "no outputs of main/0: they were not uploaded: the store is full"
        );
        let unknown = gap(GapKind::Missing, None);
        assert_eq!(reasons(&[unknown.clone(), unknown.clone()]), None);
        let found = reasons(&[unknown, missing]).unwrap();
        assert!(
            found.ends_with("the store is full; and of 1 more"),
            "{found}"
        );
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
        // The next attempt is running.
        let next = [pod("a", 0, "Failed"), pod("b", 10, "Running")];
        assert_eq!(kind(&next, Some(&running)), None);
    }
}
