//! What all evidence says at one moment, without following.

use std::time::Duration;

use jiff::Timestamp;

use super::{Seen, Step, Track};
use crate::{
    evidence::{JobEvidence, PodEvidence},
    follow::Outcome,
    runs::RunRole,
};

/// What a run's evidence says at one moment.
pub(crate) struct Verdict {
    pub(crate) outcome: Option<Outcome>,
    pub(crate) succeeded: u32,
}

/// Decides a run from all its evidence at once, as a follower would. That a
/// task waits long for its start decides nothing here.
pub(crate) fn decide_now(
    roles: &[RunRole],
    jobs: &[&JobEvidence],
    pods: &[&PodEvidence],
    began: Timestamp,
) -> Verdict {
    let mut track = Track::new(roles.to_vec(), Duration::MAX, began);
    track.grace = Duration::ZERO;
    for job in jobs {
        track.see(Seen::Job(Box::new((*job).clone())), began);
    }
    for pod in pods {
        track.see(Seen::Pod(Box::new((*pod).clone())), began);
    }
    let mut verdict = Verdict {
        outcome: None,
        succeeded: 0,
    };
    for step in track.see(Seen::Synced, began) {
        match step {
            Step::Progress(progress) => {
                verdict.succeeded = progress.roles.iter().map(|role| role.succeeded).sum();
            }
            Step::Decided { outcome, .. } => verdict.outcome = Some(outcome),
            _ => {}
        }
    }
    verdict
}
