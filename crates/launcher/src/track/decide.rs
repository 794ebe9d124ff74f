//! How a run ends: what decides it, the weightiest first.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;

use super::{
    State, Step, Track, finished,
    outcome::{failed_outcome, job_outcome, not_started, was_killed},
    waited,
};
use crate::{
    evidence::JobEvidence,
    explain::{self, Explanation, Patience},
    follow::{Ending, Outcome},
};

impl Track {
    pub(super) fn decide(&mut self, now: Timestamp, steps: &mut Vec<Step>) {
        if self.decided {
            return;
        }
        let found = self
            .overdue()
            .or_else(|| self.failed_task())
            .or_else(|| self.failed_job())
            .or_else(|| self.cancelled())
            .or_else(|| self.success())
            .or_else(|| self.not_started(now));
        if let Some((outcome, evidence)) = found {
            self.decided = true;
            steps.push(Step::Decided { outcome, evidence });
        }
    }

    /// The task that failed first. Those that were then killed with it come
    /// later, or in the same second but by a signal.
    fn failed_task(&self) -> Option<(Outcome, BTreeSet<String>)> {
        let failed = self.roles.iter().flat_map(|role| {
            self.states(role)
                .into_iter()
                .filter_map(|state| match state {
                    State::Failed(pod) => Some(pod),
                    _ => None,
                })
        });
        let pod = failed.min_by_key(|pod| (finished(pod), was_killed(pod), pod.task()))?;
        Some((
            failed_outcome(pod, None),
            BTreeSet::from([pod.metadata.uid.clone()]),
        ))
    }

    fn failed_job(&self) -> Option<(Outcome, BTreeSet<String>)> {
        let (role, condition) = self
            .jobs
            .iter()
            .filter(|(role, _)| self.settled.contains(*role))
            .find_map(|(role, job)| Some((role, job.failure()?)))?;
        Some((job_outcome(role, condition), BTreeSet::new()))
    }

    /// The run took too long: its tasks were then ended by a signal, which is
    /// no failure of theirs.
    fn overdue(&self) -> Option<(Outcome, BTreeSet<String>)> {
        let (role, condition) = self.jobs.iter().find_map(|(role, job)| {
            let failure = job.failure()?;
            (failure.reason == "DeadlineExceeded").then_some((role, failure))
        })?;
        Some((job_outcome(role, condition), BTreeSet::new()))
    }

    fn cancelled(&self) -> Option<(Outcome, BTreeSet<String>)> {
        let reason = if self.jobs.values().any(JobEvidence::is_cancelled) {
            "the run was cancelled"
        } else if self.jobs.is_empty() && !self.all_done() {
            "the run was removed"
        } else {
            return None;
        };
        let outcome = Outcome {
            ending: Ending::Cancelled,
            exit_code: 130,
            task: None,
            reason: reason.to_owned(),
            remedy: None,
        };
        Some((outcome, BTreeSet::new()))
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
        };
        Some((
            outcome,
            evidence.map(|(_, pod)| pod.metadata.uid.clone()).collect(),
        ))
    }

    fn not_started(&self, now: Timestamp) -> Option<(Outcome, BTreeSet<String>)> {
        for (uid, (explanation, since)) in &self.stuck {
            let Some(pod) = self.pods.get(uid) else {
                continue;
            };
            let Some((_, patience)) = explain::stuck(pod) else {
                continue;
            };
            let patience = match patience {
                Patience::None => Duration::ZERO,
                Patience::Short(short) => short.min(self.start_timeout),
                Patience::StartTimeout => self.start_timeout,
            };
            if waited(*since, now) >= patience {
                return Some((not_started(pod.task(), explanation), BTreeSet::new()));
            }
        }
        for (uid, since) in &self.unstarted {
            if let Some(pod) = self.pods.get(uid)
                && waited(*since, now) >= self.start_timeout
            {
                let explanation = explain::slow(pod, self.start_timeout);
                return Some((not_started(pod.task(), &explanation), BTreeSet::new()));
            }
        }
        let idle = self.roles.iter().find(|role| {
            let suspended = self
                .jobs
                .get(&role.name)
                .is_some_and(|job| job.spec.suspend);
            !suspended && self.pods_of(&role.name).next().is_none() && !self.all_succeeded(role)
        })?;
        let began = self.admitted.get(&idle.name).copied();
        let told = self
            .jobs
            .get(&idle.name)
            .and_then(|job| job.status.start_time);
        let began = [began, told]
            .into_iter()
            .flatten()
            .fold(self.began, Timestamp::max);
        (waited(began, now) >= self.start_timeout).then(|| {
            let explanation = Explanation {
                cause: format!(
                    "no pod was made for role {:?} within {} s",
                    idle.name,
                    self.start_timeout.as_secs()
                ),
                remedy: "look at the Job's events for a quota or a policy: `kubectl describe job`"
                    .into(),
            };
            (not_started(None, &explanation), BTreeSet::new())
        })
    }
}
