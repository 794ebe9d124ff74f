//! Failed attempts that a Job retries with another pod.

use std::collections::{BTreeMap, BTreeSet};

use longshore_model::facts::PodFacts;

use super::{Step, Track, finished, outcome::ended_by_signal};
use crate::{
    evidence::{JobEvidence, RunPod as _},
    explain::{self, Cause},
    outcome::Retry,
    role::RunRole,
};

/// The default backoff limit of a Job.
const DEFAULT_BACKOFF_LIMIT: u32 = 6;

/// A failed attempt.
pub(super) struct Attempt<'a> {
    pub(super) pod: &'a PodFacts,
    /// The number of the attempt among the attempts that count.
    number: u32,
    /// The maximum number of failures that are retried.
    limit: u32,
    counts: bool,
    whole_run: bool,
}

impl Track {
    /// Reports each failed attempt once, unless it ends the run. For attempts before the start,
    /// reports only those that have not been replaced yet.
    pub(super) fn report_retries(&mut self, steps: &mut Vec<Step>) {
        let is_first = self.retried.is_none();
        let mut known = self.retried.take().unwrap_or_default();
        for role in &self.roles {
            let Some(job) = self.jobs.get(&role.name) else {
                continue;
            };
            if job.is_over() || job.is_cancelled() || job.spec.suspend {
                continue;
            }
            let attempts = self.attempts(&role.name);
            let last: BTreeSet<&str> = attempts
                .values()
                .filter_map(|pods| pods.last())
                .map(|pod| pod.metadata.uid.as_str())
                .collect();
            for attempt in self.retried_attempts(role, job) {
                let uid = &attempt.pod.metadata.uid;
                let is_old = is_first && (job.is_independent() || !last.contains(uid.as_str()));
                if known.insert(uid.clone()) && !is_old {
                    steps.push(Step::Retry(self.retry(&attempt)));
                }
            }
        }
        for attempt in self.failures_of_set() {
            // Other failures at the same time belong to the same attempt.
            let is_known = self
                .of_set_attempt(&attempt)
                .any(|pod| known.contains(&pod.metadata.uid));
            known.insert(attempt.pod.metadata.uid.clone());
            if !is_known {
                steps.push(Step::Retry(self.retry(&attempt)));
            }
        }
        self.retried = Some(known);
    }

    /// The failures that have restarted a JobSet: the first failure of each attempt, unless a
    /// signal ended it, because the restart itself also ends tasks by a signal. A restart deletes
    /// Jobs and pods immediately and creates others, possibly before the failure was seen.
    fn failures_of_set(&self) -> Vec<Attempt<'_>> {
        let of_set = self.jobs.values().filter(|job| !job.is_cancelled());
        let counts = of_set.filter_map(JobEvidence::set_restarts);
        let Some((restarts, limit)) = counts.max() else {
            return Vec::new();
        };
        let mut first: BTreeMap<u32, &PodFacts> = BTreeMap::new();
        for pod in self.pods.values() {
            let job = pod.task().and_then(|task| self.jobs.get(&task.role));
            let counts = job.is_some_and(|job| !job.never_retries(pod) && !job.ignores(pod));
            let ends_itself = pod.ended().is_some() && !ended_by_signal(pod);
            let attempt = pod.attempts_before();
            // Restarts after disruptions may lead to numbers above the limit.
            let is_counted = counts && attempt < restarts && attempt < limit;
            if is_counted && pod.has_failed() && ends_itself {
                let known = first.entry(attempt).or_insert(pod);
                if finished(pod) < finished(known) {
                    *known = pod;
                }
            }
        }
        let attempts = first.into_iter().map(|(before, pod)| Attempt {
            pod,
            number: before.saturating_add(1),
            limit,
            counts: true,
            whole_run: true,
        });
        attempts.collect()
    }

    /// The pods of the same attempt of a JobSet.
    fn of_set_attempt(&self, attempt: &Attempt<'_>) -> impl Iterator<Item = &PodFacts> {
        let before = attempt.pod.attempts_before();
        let pods = self.pods.values();
        pods.filter(move |pod| pod.attempts_before() == before)
    }

    /// The number of restarts of tasks: the number of replaced pods, or of restarts that a JobSet
    /// reports.
    pub(super) fn restarts(&self) -> u32 {
        let by_set = self.jobs.values().filter_map(JobEvidence::set_restarts);
        let by_set = by_set.map(|(restarts, _)| restarts).max().unwrap_or(0);
        let roles = self.roles.iter();
        let replaced = roles.flat_map(|role| {
            let attempts = self.attempts(&role.name).into_values();
            attempts.map(|pods| replaced(&pods))
        });
        replaced.fold(by_set, u32::saturating_add)
    }

    /// Evidence about the restarts before a failure that ends the run.
    pub(super) fn restarted_before(&self, pod: &PodFacts) -> Vec<String> {
        let Some(task) = pod.task() else {
            return Vec::new();
        };
        let Some(job) = self.jobs.get(&task.role) else {
            return Vec::new();
        };
        let mut known = Vec::new();
        let per_task = job
            .spec
            .backoff_limit_per_index
            .filter(|_| !job.restarts_all());
        let limit = match (job.set_restarts(), per_task) {
            (Some((_, most)), _) => most,
            (None, Some(limit)) => limit,
            (None, None) => job.spec.backoff_limit.unwrap_or(0),
        };
        let cause = explain::failure(pod, None, &self.cluster).0.kind;
        if limit > 0 && job.never_retries(pod) && cause != Cause::IdleGpu {
            known.push("no_retry_exit_codes".to_owned());
        }
        let earlier = self.attempts(&task.role);
        let earlier = earlier
            .iter()
            .filter(|(index, _)| per_task.is_none() || **index == task.index);
        let failed = earlier.flat_map(|(_, pods)| pods).filter(|other| {
            let is_other = other.metadata.uid != pod.metadata.uid;
            is_other
                && other.has_failed()
                && !job.ignores(other)
                && finished(other) <= finished(pod)
        });
        let count = u32::try_from(failed.count()).unwrap_or(u32::MAX);
        let count = job.set_restarts().map_or(count, |(restarts, _)| restarts);
        // Tasks that were killed with the run are not counted as earlier attempts.
        if limit > 0 && count > 0 {
            known.push(format!("restarted {} of {limit} times", count.min(limit)));
        }
        known
    }

    /// The description of an attempt.
    pub(super) fn retry(&self, attempt: &Attempt<'_>) -> Retry {
        Retry {
            explanation: explain::failure(attempt.pod, None, &self.cluster).0,
            attempt: attempt.number,
            attempts: attempt.limit.saturating_add(1),
            counts: attempt.counts,
            whole_run: attempt.whole_run,
        }
    }

    /// The failed attempts of a role's tasks that do not end the run, in the order of their ends.
    pub(super) fn retried_attempts<'a>(
        &'a self,
        role: &RunRole,
        job: &JobEvidence,
    ) -> Vec<Attempt<'a>> {
        let mut failed: Vec<(u32, &PodFacts)> = Vec::new();
        for (index, pods) in self.attempts(&role.name) {
            failed.extend(pods.into_iter().map(|pod| (index, pod)));
        }
        // If failures are not counted per task, a pod that the Job deletes ends by a signal.
        let per_task = job
            .spec
            .backoff_limit_per_index
            .filter(|_| !job.restarts_all());
        failed.retain(|(_, pod)| {
            let is_deleted = pod.metadata.deletion_timestamp.is_some();
            pod.has_failed() && !job.never_retries(pod) && (per_task.is_some() || !is_deleted)
        });
        failed.sort_by_key(|(_, pod)| finished(pod));
        let (earlier, limit) = match (job.set_restarts(), per_task) {
            // Each restart of a JobSet creates new Jobs.
            (Some((restarts, most)), _) => (restarts, most),
            (None, Some(limit)) => (0, limit),
            (None, None) => (0, job.spec.backoff_limit.unwrap_or(DEFAULT_BACKOFF_LIMIT)),
        };
        let mut counted: Vec<u32> = Vec::new();
        let mut attempts = Vec::new();
        for (index, pod) in failed {
            let counts = !job.ignores(pod);
            if counts {
                counted.push(index);
            }
            let of_task = |other: &&u32| per_task.is_none() || **other == index;
            let number = counted.iter().filter(of_task).count();
            let number = match job.set_restarts() {
                Some(_) => number.min(1),
                None => number,
            };
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            attempts.push(Attempt {
                pod,
                number: number.saturating_add(earlier),
                limit,
                counts,
                whole_run: job.restarts_all(),
            });
        }
        // A failure above the limit ends the Job, or the task, even if its status is not updated
        // yet.
        match job.is_independent() {
            true => attempts.retain(|attempt| attempt.number <= limit),
            false if attempts.iter().any(|attempt| attempt.number > limit) => attempts.clear(),
            false => {}
        }
        attempts
    }
}

/// The number of replacements of a task's pod. Deleted pods are counted by their successors.
fn replaced(pods: &[&PodFacts]) -> u32 {
    let counted = pods.iter().map(|pod| pod.counted_before());
    let there = u32::try_from(pods.len().saturating_sub(1)).unwrap_or(u32::MAX);
    counted.fold(there, u32::max)
}
