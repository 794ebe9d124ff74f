//! Evaluates a run from its complete evidence, without following.

use std::time::Duration;

use jiff::Timestamp;
use longshore_model::facts::PodFacts;

use super::{Seen, Step, Track, finished};
use crate::{
    evidence::JobEvidence,
    explain::{ClusterEvidence, Explanation},
    outcome::{Outcome, Retry},
    progress::Progress,
    role::RunRole,
};

/// The result of evaluating a run.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The outcome, if it is decided.
    pub outcome: Option<Outcome>,
    /// The progress of the roles.
    pub progress: Progress,
    /// The longest wait with its cause.
    pub waits: Option<Explanation>,
    /// The number of restarts of tasks with a new pod.
    pub restarts: u32,
    /// The latest retried attempt, and the cause of its failure.
    pub retried: Option<Retry>,
    /// The names of the active Jobs that do not end by themselves when their pods do.
    pub going_on: Vec<String>,
}

impl Verdict {
    /// The number of tasks that succeeded.
    pub fn succeeded(&self) -> u32 {
        self.progress.roles.iter().map(|role| role.succeeded).sum()
    }
}

/// Decides a run from its complete evidence, like a follower, but without start timeouts.
pub fn decide_now(
    roles: &[RunRole],
    jobs: &[&JobEvidence],
    pods: &[&PodFacts],
    cluster: &ClusterEvidence,
    began: Timestamp,
) -> Verdict {
    let mut track = Track::new(roles.to_vec(), Duration::MAX, began);
    track.grace = Duration::ZERO;
    track.cluster = cluster.clone();
    for job in jobs {
        track.see(Seen::Job(Box::new((*job).clone())), began);
    }
    for pod in pods {
        let since = pod.metadata.creation_timestamp.unwrap_or(began);
        track.see(Seen::Pod(Box::new((*pod).clone())), since);
    }
    let mut verdict = Verdict::default();
    for step in track.see(Seen::Synced, began) {
        match step {
            Step::Progress(progress) => verdict.progress = progress,
            Step::Decided { outcome, .. } => verdict.outcome = Some(outcome),
            _ => {}
        }
    }
    let going_on = track.going_on().into_iter();
    verdict.going_on = going_on.map(|job| job.metadata.name.clone()).collect();
    let waits = track.stuck_first().into_iter().next();
    verdict.waits = waits.map(|(_, stuck)| track.with_others(stuck.why.clone()));
    verdict.restarts = track.restarts();
    let retried = track.roles.iter().filter_map(|role| {
        let job = track.jobs.get(&role.name)?;
        let attempts = track.retried_attempts(role, job);
        attempts
            .into_iter()
            .max_by_key(|attempt| finished(attempt.pod))
    });
    let last = retried.max_by_key(|attempt| finished(attempt.pod));
    verdict.retried = last.map(|last| track.retry(&last));
    verdict
}
