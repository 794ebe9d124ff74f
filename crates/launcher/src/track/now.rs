//! What all evidence says at one moment, without following.

use std::time::Duration;

use jiff::Timestamp;

use super::{Seen, Step, Track, finished, outcome::not_started};
use crate::{
    evidence::{JobEvidence, PodEvidence},
    explain::{self, Around, Cause, Explanation},
    follow::{Outcome, Progress},
    names,
    runs::RunRole,
};

/// What a run's evidence says at one moment.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) outcome: Option<Outcome>,
    pub(crate) progress: Progress,
    /// What waits, and why; the longest first.
    pub(crate) waits: Option<Explanation>,
    /// Why the latest attempt failed that was started again.
    pub(crate) retried: Option<Explanation>,
}

impl Verdict {
    pub(crate) fn succeeded(&self) -> u32 {
        self.progress.roles.iter().map(|role| role.succeeded).sum()
    }
}

/// Decides a run from all its evidence at once, as a follower would. That a
/// task waits long for its start decides nothing here.
pub(crate) fn decide_now(
    roles: &[RunRole],
    jobs: &[&JobEvidence],
    pods: &[&PodEvidence],
    around: &Around,
    began: Timestamp,
) -> Verdict {
    let mut track = Track::new(roles.to_vec(), Duration::MAX, began);
    track.grace = Duration::ZERO;
    track.around = around.clone();
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
    if verdict.outcome.is_none() {
        verdict.outcome = stopped(roles, jobs);
    }
    let waits = track.stuck_first().into_iter().next();
    verdict.waits = waits.map(|(_, stuck)| track.with_others(stuck.why.clone()));
    let failed = pods.iter().filter(|pod| pod.has_failed());
    verdict.retried = failed
        .max_by_key(|pod| finished(pod))
        .map(|pod| explain::failure(pod, None, around).0);
    verdict
}

/// A run that was given up before its tasks began leaves no pods; what stopped
/// it is written on its Jobs.
fn stopped(roles: &[RunRole], jobs: &[&JobEvidence]) -> Option<Outcome> {
    let is_service = |job: &JobEvidence| {
        let mut roles = roles.iter();
        roles.any(|role| role.service && job.role() == Some(role.name.as_str()))
    };
    let job = jobs.iter().find(|job| {
        job.spec.suspend
            && !job.is_over()
            && !is_service(job)
            && job.metadata.annotations.contains_key(names::STOPPED)
    })?;
    let explanation = job.note().unwrap_or_else(|| {
        let text = job.metadata.annotations.get(names::STOPPED);
        let text = text.map_or("", String::as_str);
        // The time stands before it.
        let reason = text.split_once(": ").map_or(text, |(_, reason)| reason);
        Explanation::new(Cause::Unknown, reason, "run it again")
    });
    Some(not_started(explanation))
}
