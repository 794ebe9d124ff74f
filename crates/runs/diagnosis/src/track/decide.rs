//! Decides the outcome of a run, by the first applicable rule.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use longshore_model::facts::PodFacts;

use super::{
    Held, State, Step, Stuck, Track, finished,
    outcome::{
        CANCELLED, cancelled, job_outcome, not_started, noted_outcome, recorded,
        stopped_with_cluster, succeeded, was_killed,
    },
    waited,
};
use crate::evidence::RunPod as _;
use crate::{
    evidence::{JobEvidence, index_set},
    explain::{self, Cause, Explanation, WaitLimit},
    outcome::{Ending, Outcome},
    role::RunRole,
};

/// An outcome, and the pods whose logs belong to it.
type Found = (Outcome, BTreeSet<String>);

impl Track {
    pub(super) fn decide(&mut self, now: Timestamp, steps: &mut Vec<Step>) {
        if self.decided {
            return;
        }
        let seen = self
            .recorded_end()
            .or_else(|| self.cluster_stopped())
            .or_else(|| self.cancelled());
        let found = seen
            .or_else(|| self.first_end())
            .or_else(|| self.success())
            .or_else(|| self.removed())
            .or_else(|| self.stopped())
            .or_else(|| self.not_started(now));
        if let Some((outcome, evidence)) = found {
            self.decided = true;
            steps.push(Step::Decided { outcome, evidence });
        }
    }

    /// The first of the ends that do not exclude each other. A service role may fail, or a deadline
    /// may pass, before or after all commands have succeeded.
    fn first_end(&self) -> Option<Found> {
        // The order matters for ends at the same time: tasks that a deadline ends may still exit
        // with 0, and a pod shows more than its Job.
        let ends = [
            self.overdue(),
            self.commands_succeeded(),
            self.failed_task(),
            self.failed_job(),
        ];
        let (_, found) = ends.into_iter().flatten().min_by_key(|(at, _)| *at)?;
        Some(found)
    }

    /// The end that a client recorded before it stopped the pods that showed it.
    fn recorded_end(&self) -> Option<Found> {
        let mut outcome = recorded(self.jobs.values())?;
        // The Job may have failed in the meantime.
        outcome.explanation = outcome.explanation.map(|why| {
            let job = why.role.as_ref().and_then(|role| self.jobs.get(role));
            match job.and_then(JobEvidence::failure) {
                Some(failure) => why.seen(format!("Job: {}", failure.reason)),
                None => why,
            }
        });
        let failed = outcome
            .explanation
            .as_ref()
            .and_then(|why| why.pod.as_ref());
        let evidence = match outcome.ending {
            Ending::Succeeded => self.pods_of_own_roles(),
            _ => {
                let pods = self.pods.iter();
                let pods = pods.filter(|(_, pod)| Some(&pod.metadata.name) == failed);
                pods.map(|(uid, _)| uid.clone()).collect()
            }
        };
        Some((outcome, evidence))
    }

    /// The commands of all tasks have succeeded, each before the deletion of its pod was requested.
    /// Later changes of the pods and Jobs do not matter: other containers may fail, or run until a
    /// deadline.
    fn commands_succeeded(&self) -> Option<(Timestamp, Found)> {
        let has_succeeded = |pod: &&&PodFacts| {
            let is_whole = pod.metadata.deletion_timestamp.is_none();
            pod.has_succeeded() && (is_whole || pod.ended_by_itself())
        };
        let mut last = None;
        for role in self.roles.iter().filter(|role| !role.service) {
            let attempts = self.attempts(&role.name);
            let job = self.jobs.get(&role.name);
            let complete = job.filter(|job| job.is_complete());
            let count = usize::try_from(self.count(role)).unwrap_or_default();
            let completed = job.map(|job| index_set(&job.status.completed_indexes, count));
            let completed = completed.unwrap_or_default();
            for index in 0..self.count(role) {
                let mut pods = attempts.get(&index).into_iter().flatten();
                let at = match pods.find(|pod| has_succeeded(pod)) {
                    Some(pod) => finished(pod),
                    None => {
                        let is_completed = completed.get(index as usize) == Some(&true);
                        let by_job = complete.map(|job| job.over_since());
                        by_job
                            .or(is_completed.then_some(None))?
                            .unwrap_or(Timestamp::MIN)
                    }
                };
                last = last.max(Some(at));
            }
        }
        Some((last?, (succeeded(), self.pods_of_own_roles())))
    }

    /// The task that failed first. Tasks that were killed as a consequence end later, or by a
    /// signal in the same second.
    fn failed_task(&self) -> Option<(Timestamp, Found)> {
        let roles = self.roles.iter();
        let roles = roles.filter(|role| {
            !self.is_removed_by_set(&role.name) && !self.goes_on_after_failures(role)
        });
        let failed = roles.flat_map(|role| {
            self.states(role)
                .into_iter()
                .filter_map(|state| match state {
                    State::Failed { pod, is_cause } => Some((pod, is_cause)),
                    _ => None,
                })
        });
        let failed: Vec<_> = failed.collect();
        let others = u32::try_from(failed.len().saturating_sub(1)).unwrap_or(u32::MAX);
        // Tasks that wait for a restart fail with their Job, and are not the cause.
        let (pod, is_cause) = failed.into_iter().min_by_key(|(pod, is_cause)| {
            (!is_cause, finished(pod), was_killed(pod), pod.task())
        })?;
        // A run of independent tasks continues until the last one has ended.
        let mut independent = self.jobs.values().filter(|job| job.is_independent());
        let at = match independent.next() {
            Some(_) => self.all_ended_at(),
            None => is_cause.then(|| finished(pod)),
        };
        let at = at.unwrap_or(Timestamp::MAX);
        let outcome = self.failed_outcome(pod, others, None);
        Some((at, (outcome, BTreeSet::from([pod.metadata.uid.clone()]))))
    }

    /// The time when the last task ended. `None` if a task is active, waits for a restart, or is
    /// gone with the time of its end.
    fn all_ended_at(&self) -> Option<Timestamp> {
        let mut last = Timestamp::MIN;
        for role in self.roles.iter().filter(|role| !role.service) {
            let attempts = self.attempts(&role.name);
            for (index, state) in (0..).zip(self.states(role)) {
                let ended = match state {
                    State::Failed {
                        pod,
                        is_cause: true,
                    } => Some(pod),
                    State::Succeeded => {
                        let mut pods = attempts.get(&index).into_iter().flatten();
                        pods.find(|pod| pod.has_succeeded()).copied()
                    }
                    _ => return None,
                };
                last = last.max(ended.map_or(last, finished));
            }
        }
        Some(last)
    }

    /// Returns true if the role has independent tasks that have not ended, and its Job is active.
    fn goes_on_after_failures(&self, role: &RunRole) -> bool {
        let job = self.jobs.get(&role.name);
        let is_active = job.is_some_and(|job| job.is_independent() && !job.is_over());
        is_active
            && self
                .states(role)
                .iter()
                .any(|state| matches!(state, State::Pending | State::Running))
    }

    /// A Job failed, and no pod of it shows the cause. Jobs may also fail because of other
    /// containers in the pod of a command that succeeds.
    fn failed_job(&self) -> Option<(Timestamp, Found)> {
        let counts = |role: &str| {
            let mut roles = self.roles.iter();
            roles.find(|own| own.name == role).is_none_or(|role| {
                let states = self.states(role);
                let has_pod = |state: &State<'_>| matches!(state, State::Failed { .. });
                let has_ended = |state: &State<'_>| matches!(state, State::Succeeded);
                !states.iter().any(has_pod) && !states.iter().all(has_ended)
            })
        };
        let (job, condition) = self
            .jobs
            .iter()
            .filter(|(role, _)| self.settled.contains(*role) && !self.is_removed_by_set(role))
            .filter(|(role, _)| counts(role))
            .find_map(|(_, job)| Some((job, job.failure()?)))?;
        let at = condition.last_transition_time.unwrap_or(Timestamp::MAX);
        let outcome = job_outcome(job, condition, &self.cluster);
        Some((at, (outcome, BTreeSet::new())))
    }

    /// Returns true if a finished JobSet deletes the Job of a service role. Killing its tasks is
    /// not a failure.
    fn is_removed_by_set(&self, role: &str) -> bool {
        let is_service = self.roles.iter().any(|own| own.name == role && own.service);
        let job = self.jobs.get(role).filter(|_| is_service);
        job.is_some_and(|job| job.jobset().is_some() && job.metadata.deletion_timestamp.is_some())
    }

    /// The run exceeded its timeout, and its tasks were killed. They did not fail by themselves.
    fn overdue(&self) -> Option<(Timestamp, Found)> {
        let (job, condition) = self.jobs.values().find_map(|job| {
            let failure = job.failure()?;
            (failure.reason == "DeadlineExceeded").then_some((job, failure))
        })?;
        let at = condition.last_transition_time.unwrap_or(Timestamp::MIN);
        let outcome = job_outcome(job, condition, &self.cluster);
        Some((at, (outcome, BTreeSet::new())))
    }

    /// The run was cancelled. A client cancels only a run that has not ended, so the later ends of
    /// its tasks do not matter.
    fn cancelled(&self) -> Option<Found> {
        let is_cancelled = self.jobs.values().any(JobEvidence::is_cancelled);
        is_cancelled.then(|| (cancelled(CANCELLED), BTreeSet::new()))
    }

    /// The run has no Jobs.
    fn removed(&self) -> Option<Found> {
        let is_removed = self.jobs.is_empty() && !self.all_done();
        is_removed.then(|| (cancelled("the run was removed"), BTreeSet::new()))
    }

    /// The cluster was stopped, as recorded on the Jobs. The pods ended because of that, and did
    /// not fail by themselves.
    fn cluster_stopped(&self) -> Option<Found> {
        let mut notes = self.jobs.values().filter_map(JobEvidence::note);
        let why = notes.find(|why| why.kind == Cause::ClusterStopped)?;
        Some((stopped_with_cluster(why), BTreeSet::new()))
    }

    /// A follower stopped the run, and no pod is left to show the cause.
    fn stopped(&self) -> Option<Found> {
        let roles = self.roles.iter().filter(|role| !role.service);
        let settled = roles.filter(|role| self.settled.contains(&role.name));
        let mut jobs = settled.filter_map(|role| self.jobs.get(&role.name));
        let job = jobs.find(|job| job.is_stopped())?;
        Some((noted_outcome(job), BTreeSet::new()))
    }

    fn all_done(&self) -> bool {
        let mut own = self.roles.iter().filter(|role| !role.service);
        own.all(|role| self.all_succeeded(role))
    }

    fn success(&self) -> Option<Found> {
        if !self.all_done() {
            return None;
        }
        Some((succeeded(), self.pods_of_own_roles()))
    }

    /// The pods of the roles other than service roles.
    fn pods_of_own_roles(&self) -> BTreeSet<String> {
        let own = self.roles.iter().filter(|role| !role.service);
        let pods = own.flat_map(|role| self.pods_of(&role.name));
        pods.map(|(_, pod)| pod.metadata.uid.clone()).collect()
    }

    /// The time since which no independent task has run. Tasks that wait for the resources of other
    /// tasks may start later. `None` while a task runs.
    pub(super) fn idle_since(&self) -> Option<Timestamp> {
        let mut since = Timestamp::MIN;
        for role in self.roles.iter().filter(|role| self.is_independent(role)) {
            for (_, pod) in self.pods_of(&role.name) {
                if pod.has_started() && !pod.is_over() {
                    return None;
                }
                since = since.max(pod.finished_at().unwrap_or(since));
            }
        }
        Some(since)
    }

    fn not_started(&self, now: Timestamp) -> Option<Found> {
        let idle_since = self.idle_since()?;
        let waited = |since: Timestamp, now| waited(since.max(idle_since), now);
        for (_, stuck) in self.stuck_first() {
            let limit = match stuck.limit {
                WaitLimit::None => Duration::ZERO,
                WaitLimit::Short(short) => short.min(self.start_timeout),
                WaitLimit::StartTimeout => self.start_timeout,
            };
            if waited(stuck.since, now) >= limit && !stuck.why.kind.is_meant() {
                let why = self.with_others(stuck.why.clone());
                return Some((not_started(why), BTreeSet::new()));
            }
        }
        for (uid, since) in &self.unstarted {
            if let Some(pod) = self.pods.get(uid)
                && waited(*since, now) >= self.start_timeout
            {
                let why = explain::slow(pod, self.start_timeout, &self.cluster);
                return Some((not_started(why), BTreeSet::new()));
            }
        }
        let idle = self.roles.iter().find(|role| {
            let suspended = self
                .jobs
                .get(&role.name)
                .is_some_and(|job| job.spec.suspend);
            !suspended && self.pods_of(&role.name).next().is_none() && !self.all_succeeded(role)
        })?;
        let admitted = self.admitted.get(&idle.name).copied();
        let job_start = self.jobs.get(&idle.name);
        let job_start = job_start.and_then(|job| job.status.start_time);
        let since = [admitted, job_start].into_iter().flatten();
        let since = since.fold(self.began, Timestamp::max);
        (waited(since, now) >= self.start_timeout).then(|| {
            let cause = format!(
                "no pod was created for role {:?} within {} s",
                idle.name,
                self.start_timeout.as_secs()
            );
            let remedy =
                "look at the Job's events for a quota or a policy: `longshore describe job`";
            let why = Explanation::new(Cause::NoPods, cause, remedy);
            (not_started(why), BTreeSet::new())
        })
    }

    /// The blocked pods and roles, the longest first.
    pub(super) fn stuck_first(&self) -> Vec<(&Held, &Stuck)> {
        let mut stuck: Vec<_> = self.stuck.iter().collect();
        stuck.sort_by_key(|(_, stuck)| stuck.since);
        stuck
    }

    /// Adds the number of others that are blocked by the same cause.
    pub(super) fn with_others(&self, mut why: Explanation) -> Explanation {
        let same = self
            .stuck
            .values()
            .filter(|stuck| stuck.why.kind == why.kind);
        why.others = u32::try_from(same.count().saturating_sub(1)).unwrap_or(u32::MAX);
        why
    }
}
