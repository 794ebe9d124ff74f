//! Jobs that remain active when the tasks of a run have ended, and pods with containers that do not
//! end.

use longshore_model::facts::PodFacts;

use super::{State, Track};
use crate::{
    evidence::{JobEvidence, RunPod as _},
    outcome::Ending,
    role::RunRole,
};

impl Track {
    /// The active Jobs that do not end by themselves when their pods do.
    pub fn going_on(&self) -> Vec<&JobEvidence> {
        let is_over = |role: &RunRole| {
            self.jobs.get(&role.name).is_none_or(|job| {
                job.is_over() || job.is_cancelled() || job.spec.suspend || self.completes(role)
            })
        };
        self.roles
            .iter()
            .filter(|role| !is_over(role))
            .filter_map(|role| self.jobs.get(&role.name))
            .collect()
    }

    /// Returns true if the Job of the role ends by itself, or after its lingering pods are ended.
    /// If it counts the pod of a command that succeeded as failed, because another container
    /// failed, it does not end, but runs the command again.
    fn completes(&self, role: &RunRole) -> bool {
        if self.is_independent(role) {
            // The Job ends with its last task, even if tasks have failed.
            let states = self.states(role);
            let goes_on = |state: &State<'_>| matches!(state, State::Pending | State::Running);
            return !states.iter().any(goes_on);
        }
        let attempts = self.attempts(&role.name);
        let ends_well = |index: u32| {
            let pods = attempts.get(&index);
            pods.is_none_or(|pods| pods.iter().any(|pod| pod.ends_well()))
        };
        self.all_succeeded(role) && (0..self.count(role)).all(ends_well)
    }

    /// The pods whose command has ended while another container is still running.
    pub fn lingering(&self) -> Vec<&PodFacts> {
        let pods = self.pods.values();
        let own = pods.filter(|pod| pod.task().is_some() && pod.lingers());
        own.filter(|pod| pod.metadata.deletion_timestamp.is_none())
            .collect()
    }

    /// The Job of a pod's role.
    pub fn job_of(&self, pod: &PodFacts) -> Option<&JobEvidence> {
        self.jobs.get(&pod.task()?.role)
    }

    /// Returns true if a client has recorded that the tasks of this role succeeded.
    pub(super) fn has_recorded_success(&self, role: &RunRole) -> bool {
        let mut ends = self.jobs.values().filter_map(JobEvidence::end);
        !role.service && ends.any(|end| end.ending == Ending::Succeeded)
    }
}
