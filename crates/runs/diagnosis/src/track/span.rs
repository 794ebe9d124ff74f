//! The start and end times of a run.

use jiff::Timestamp;
use longshore_model::facts::PodFacts;

use super::Track;
use crate::evidence::RunPod as _;
use crate::{evidence::JobEvidence, role::RunRole};

/// The times when a run was submitted, and when its last task ended.
///
/// Prefers the times of pods: a Job's times come from its controller, which may notice an end much
/// later, for example after an outage of the cluster. The Jobs' times are used for roles with
/// missing pods.
pub(super) fn span(
    roles: &[RunRole],
    jobs: &[&JobEvidence],
    pods: &[&PodFacts],
) -> (Option<Timestamp>, Option<Timestamp>) {
    let created = jobs
        .iter()
        .filter_map(|job| job.metadata.creation_timestamp);
    let own = roles.iter().filter(|role| !role.service);
    let ended = own.filter_map(|role| {
        let of_role = pods.iter().filter(|pod| {
            let task = pod.task();
            task.is_some_and(|task| task.role == role.name)
        });
        let ends: Vec<Timestamp> = of_role.filter_map(|pod| pod.finished_at()).collect();
        let job_ends = jobs
            .iter()
            .filter(|job| job.role() == Some(role.name.as_str()))
            .filter_map(|job| {
                let failed = job.failure().and_then(|failed| failed.last_transition_time);
                job.status.completion_time.or(failed)
            });
        let is_whole = u32::try_from(ends.len()).is_ok_and(|count| count >= role.count);
        let last = ends.into_iter().max();
        match is_whole {
            true => last,
            false => last.max(job_ends.max()),
        }
    });
    (created.min(), ended.max())
}

impl Track {
    /// The times when the run was submitted, and when its last task ended.
    pub fn span(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        let jobs: Vec<_> = self.jobs.values().collect();
        let pods: Vec<_> = self.pods.values().collect();
        span(&self.roles, &jobs, &pods)
    }
}
