//! Decides the outcome of a run. The first applicable rule wins.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;

use super::{
    Held, State, Step, Stuck, Track, finished,
    outcome::{
        cancelled, job_outcome, not_started, noted_outcome, stopped_with_cluster, was_killed,
    },
    waited,
};
use crate::evidence::RunPod as _;
use crate::{
    evidence::JobEvidence,
    explain::{self, Cause, Explanation, WaitLimit},
    outcome::{Ending, Outcome},
    role::RunRole,
};

impl Track {
    pub(super) fn decide(&mut self, now: Timestamp, steps: &mut Vec<Step>) {
        if self.decided {
            return;
        }
        let seen = self
            .cluster_stopped()
            .or_else(|| self.overdue())
            .or_else(|| self.failed_task());
        let found = seen
            .map(|found| (found, false))
            .or_else(|| Some((self.failed_job()?, true)))
            .or_else(|| Some((self.cancelled().or_else(|| self.success())?, false)))
            .or_else(|| Some((self.removed()?, true)))
            .or_else(|| Some((self.stopped().or_else(|| self.not_started(now))?, true)));
        if let Some(((outcome, evidence), unseen)) = found {
            self.decided = true;
            steps.push(Step::Decided {
                outcome,
                evidence,
                unseen,
            });
        }
    }

    /// The task that failed first. Tasks that were killed as a consequence end later, or in the
    /// same second by a signal.
    fn failed_task(&self) -> Option<(Outcome, BTreeSet<String>)> {
        let roles = self.roles.iter();
        let roles = roles.filter(|role| {
            !self.is_removed_by_set(&role.name) && !self.goes_on_after_failures(role)
        });
        let failed = roles.flat_map(|role| {
            self.states(role)
                .into_iter()
                .filter_map(|state| match state {
                    State::Failed(pod) => Some(pod),
                    _ => None,
                })
        });
        let failed: Vec<_> = failed.collect();
        let others = u32::try_from(failed.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let pod = failed
            .into_iter()
            .min_by_key(|pod| (finished(pod), was_killed(pod), pod.task()))?;
        Some((
            self.failed_outcome(pod, others, None),
            BTreeSet::from([pod.metadata.uid.clone()]),
        ))
    }

    /// Whether independent tasks of the role have not ended, and its Job neither.
    fn goes_on_after_failures(&self, role: &RunRole) -> bool {
        let job = self.jobs.get(&role.name);
        let is_active = job.is_some_and(|job| job.is_independent() && !job.is_over());
        is_active
            && self
                .states(role)
                .iter()
                .any(|state| matches!(state, State::Pending | State::Running))
    }

    fn failed_job(&self) -> Option<(Outcome, BTreeSet<String>)> {
        let (job, condition) = self
            .jobs
            .iter()
            .filter(|(role, _)| self.settled.contains(*role) && !self.is_removed_by_set(role))
            .find_map(|(_, job)| Some((job, job.failure()?)))?;
        Some((job_outcome(job, condition, &self.cluster), BTreeSet::new()))
    }

    /// Whether a finished JobSet deletes the Job of a service role. Killing its tasks is not a
    /// failure.
    fn is_removed_by_set(&self, role: &str) -> bool {
        let is_service = self.roles.iter().any(|own| own.name == role && own.service);
        let job = self.jobs.get(role).filter(|_| is_service);
        job.is_some_and(|job| job.jobset().is_some() && job.metadata.deletion_timestamp.is_some())
    }

    /// The run exceeded its timeout. Its tasks were then killed, which is not their failure.
    fn overdue(&self) -> Option<(Outcome, BTreeSet<String>)> {
        let (job, condition) = self.jobs.values().find_map(|job| {
            let failure = job.failure()?;
            (failure.reason == "DeadlineExceeded").then_some((job, failure))
        })?;
        Some((job_outcome(job, condition, &self.cluster), BTreeSet::new()))
    }

    fn cancelled(&self) -> Option<(Outcome, BTreeSet<String>)> {
        let is_cancelled = self.jobs.values().any(JobEvidence::is_cancelled);
        is_cancelled.then(|| (cancelled("the run was cancelled"), BTreeSet::new()))
    }

    /// The run has no Jobs. If it was created a moment ago, the watch may not have reported them.
    fn removed(&self) -> Option<(Outcome, BTreeSet<String>)> {
        let is_removed = self.jobs.is_empty() && !self.all_done();
        is_removed.then(|| (cancelled("the run was removed"), BTreeSet::new()))
    }

    /// The cluster was stopped, as recorded on the Jobs. The end of the pods is then not their
    /// failure.
    fn cluster_stopped(&self) -> Option<(Outcome, BTreeSet<String>)> {
        let mut notes = self.jobs.values().filter_map(JobEvidence::note);
        let why = notes.find(|why| why.kind == Cause::ClusterStopped)?;
        Some((stopped_with_cluster(why), BTreeSet::new()))
    }

    /// A follower stopped the run, and no pod is left to show the cause.
    fn stopped(&self) -> Option<(Outcome, BTreeSet<String>)> {
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

    fn success(&self) -> Option<(Outcome, BTreeSet<String>)> {
        if !self.all_done() {
            return None;
        }
        let own = self.roles.iter().filter(|role| !role.service);
        let evidence = own.flat_map(|role| self.pods_of(&role.name));
        let outcome = Outcome {
            ending: Ending::Succeeded,
            exit_code: 0,
            task: None,
            reason: "all tasks succeeded".to_owned(),
            remedy: None,
            explanation: None,
            gaps: 0,
            began: None,
            finished: None,
        };
        Some((
            outcome,
            evidence.map(|(_, pod)| pod.metadata.uid.clone()).collect(),
        ))
    }

    /// Since when no independent task has run: those that wait for the resources of others may
    /// start later. `None` while a task runs.
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

    fn not_started(&self, now: Timestamp) -> Option<(Outcome, BTreeSet<String>)> {
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

    /// What is blocked, the longest first.
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
