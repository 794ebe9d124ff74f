//! The state of a followed run: evidence in, steps out. Pure: time comes as
//! an argument, and doing the steps is `follow`'s.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;

use crate::{
    evidence::{Condition, JobEvidence, PodEvidence},
    explain::{self, Explanation, Patience},
    follow::{Ending, Outcome, Progress, RoleProgress},
    names::Task,
    runs::RunRole,
};

/// What is seen of a run.
#[derive(Debug, Clone)]
pub(crate) enum Seen {
    Pod(Box<PodEvidence>),
    PodGone(String),
    Job(Box<JobEvidence>),
    JobGone(String),
    /// All that was there at the beginning has been seen.
    Synced,
    /// Time has passed.
    Tick,
}

/// What is to be done about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    Progress(Progress),
    Waiting(Task, Explanation),
    /// Read the log of a pod's container.
    Read {
        uid: String,
        pod: String,
        task: Task,
        container: String,
    },
    /// Nothing runs in the pod any more: its log has an end.
    Ended {
        uid: String,
    },
    /// The run is decided. `evidence` are the pods whose logs belong to the
    /// decision and must be read to their end.
    Decided {
        outcome: Outcome,
        evidence: BTreeSet<String>,
    },
}

pub(crate) struct Track {
    roles: Vec<RunRole>,
    start_timeout: Duration,
    began: Timestamp,
    synced: bool,
    pods: BTreeMap<String, PodEvidence>,
    jobs: BTreeMap<String, JobEvidence>,
    /// What holds a pod up, and since when it has been seen.
    stuck: BTreeMap<String, (Explanation, Timestamp)>,
    /// Since when a pod that has not started has been seen.
    unstarted: BTreeMap<String, Timestamp>,
    reading: BTreeSet<(String, String)>,
    ended: BTreeSet<String>,
    progress: Option<Progress>,
    decided: bool,
    /// When a role's Job was first seen to be over.
    job_over: BTreeMap<String, Timestamp>,
    /// Roles whose Job is believed without its pods.
    settled: BTreeSet<String>,
    /// How long a Job that is over waits for the evidence of its pods.
    grace: Duration,
}

/// Jobs and pods are seen through two watches: a Job's end may be seen before
/// the end of the pods that caused it.
const GRACE: Duration = Duration::from_secs(2);

/// A task's state, from its pods and its Job.
enum State<'a> {
    Pending,
    Running,
    Succeeded,
    Failed(&'a PodEvidence),
}

impl Track {
    pub(crate) fn new(roles: Vec<RunRole>, start_timeout: Duration, began: Timestamp) -> Self {
        Self {
            roles,
            start_timeout,
            began,
            synced: false,
            pods: BTreeMap::new(),
            jobs: BTreeMap::new(),
            stuck: BTreeMap::new(),
            unstarted: BTreeMap::new(),
            reading: BTreeSet::new(),
            ended: BTreeSet::new(),
            progress: None,
            decided: false,
            job_over: BTreeMap::new(),
            settled: BTreeSet::new(),
            grace: GRACE,
        }
    }

    pub(crate) fn pod(&self, uid: &str) -> Option<&PodEvidence> {
        self.pods.get(uid)
    }

    /// The roles whose Jobs still go on.
    pub(crate) fn going_on(&self) -> Vec<String> {
        let is_over = |role: &RunRole| {
            self.jobs.get(&role.name).is_none_or(|job| {
                job.is_over() || job.is_cancelled() || job.spec.suspend || self.all_succeeded(role)
            })
        };
        self.roles
            .iter()
            .filter(|role| !is_over(role))
            .map(|role| role.name.clone())
            .collect()
    }

    pub(crate) fn see(&mut self, seen: Seen, now: Timestamp) -> Vec<Step> {
        let mut steps = Vec::new();
        match seen {
            Seen::Pod(pod) => self.see_pod(*pod, now, &mut steps),
            Seen::PodGone(uid) => {
                self.stuck.remove(&uid);
                self.unstarted.remove(&uid);
                self.end(&uid, &mut steps);
                // A pod that ended well is not undone by its removal.
                if self.pods.get(&uid).is_some_and(|pod| !pod.is_over()) {
                    self.pods.remove(&uid);
                }
            }
            Seen::Job(job) => {
                if let Some(role) = job.role() {
                    self.jobs.insert(role.to_owned(), *job);
                }
            }
            Seen::JobGone(role) => {
                self.jobs.remove(&role);
            }
            Seen::Synced => self.synced = true,
            Seen::Tick => {}
        }
        if self.synced {
            self.settle(now);
            self.report(&mut steps);
            self.decide(now, &mut steps);
        }
        steps
    }

    fn settle(&mut self, now: Timestamp) {
        for (role, job) in self.jobs.iter().filter(|(_, job)| job.is_over()) {
            let seen = *self.job_over.entry(role.clone()).or_insert(now);
            let since = job.over_since().map_or(seen, |since| since.min(seen));
            if waited(since, now) >= self.grace {
                self.settled.insert(role.clone());
            }
        }
    }

    fn see_pod(&mut self, pod: PodEvidence, now: Timestamp, steps: &mut Vec<Step>) {
        let Some(task) = pod.task() else { return };
        let uid = pod.metadata.uid.clone();
        let mut read = |container: &str| {
            if self.reading.insert((uid.clone(), container.to_owned())) {
                steps.push(Step::Read {
                    uid: uid.clone(),
                    pod: pod.metadata.name.clone(),
                    task: task.clone(),
                    container: container.to_owned(),
                });
            }
        };
        if pod.has_started() {
            read(crate::names::MAIN);
        } else if let Some((container, _)) = pod.failed_init().filter(|_| pod.is_over()) {
            read(container);
        }
        if pod.is_over() {
            self.end(&uid, steps);
        }
        match explain::stuck(&pod) {
            Some((explanation, _)) => {
                let known = self.stuck.get(&uid);
                if known.is_none_or(|(known, _)| known.remedy != explanation.remedy) {
                    steps.push(Step::Waiting(task, explanation.clone()));
                    self.stuck.insert(uid.clone(), (explanation, now));
                }
            }
            None => {
                self.stuck.remove(&uid);
            }
        }
        if explain::is_idle(&pod) {
            self.unstarted.entry(uid.clone()).or_insert(now);
        } else {
            self.unstarted.remove(&uid);
        }
        self.pods.insert(uid, pod);
    }

    fn end(&mut self, uid: &str, steps: &mut Vec<Step>) {
        if self.ended.insert(uid.to_owned()) {
            steps.push(Step::Ended {
                uid: uid.to_owned(),
            });
        }
    }

    fn pods_of(&self, role: &str) -> impl Iterator<Item = (u32, &PodEvidence)> {
        self.pods.values().filter_map(move |pod| {
            let task = pod.task().filter(|task| task.role == role)?;
            Some((task.index, pod))
        })
    }

    fn states(&self, role: &RunRole) -> Vec<State<'_>> {
        let job = self.jobs.get(&role.name);
        let gives_up = job.is_some_and(JobEvidence::gives_up);
        let complete =
            job.is_some_and(JobEvidence::is_complete) && self.settled.contains(&role.name);
        let mut states: Vec<State<'_>> = (0..role.count)
            .map(|_| {
                if complete {
                    State::Succeeded
                } else {
                    State::Pending
                }
            })
            .collect();
        for (index, pod) in self.pods_of(&role.name) {
            let Some(state) = states.get_mut(index as usize) else {
                continue;
            };
            let new = if pod.has_succeeded() {
                State::Succeeded
            } else if pod.has_failed() {
                // A pod that somebody deletes ends by a signal: the task's
                // failure only if the Job says so too.
                let deleted = pod.metadata.deletion_timestamp.is_some();
                if !gives_up || (deleted && job.is_none_or(|job| job.failure().is_none())) {
                    continue;
                }
                State::Failed(pod)
            } else if pod.has_started() {
                State::Running
            } else {
                continue;
            };
            match (&state, &new) {
                (State::Succeeded, _) => {}
                (State::Failed(old), State::Failed(new_pod))
                    if finished(old) <= finished(new_pod) => {}
                _ => *state = new,
            }
        }
        states
    }

    fn all_succeeded(&self, role: &RunRole) -> bool {
        self.states(role)
            .iter()
            .all(|state| matches!(state, State::Succeeded))
    }

    fn report(&mut self, steps: &mut Vec<Step>) {
        let roles = self.roles.iter().map(|role| {
            let mut progress = RoleProgress {
                role: role.name.clone(),
                ..RoleProgress::default()
            };
            for state in self.states(role) {
                match state {
                    State::Pending => progress.pending += 1,
                    State::Running => progress.running += 1,
                    State::Succeeded => progress.succeeded += 1,
                    State::Failed(_) => progress.failed += 1,
                }
            }
            progress
        });
        let progress = Progress {
            roles: roles.collect(),
        };
        if self.progress.as_ref() != Some(&progress) {
            self.progress = Some(progress.clone());
            steps.push(Step::Progress(progress));
        }
    }

    fn decide(&mut self, now: Timestamp, steps: &mut Vec<Step>) {
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
        (waited(self.began, now) >= self.start_timeout).then(|| {
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

fn job_outcome(role: &str, condition: &Condition) -> Outcome {
    let explanation = explain::job_failure(condition);
    Outcome {
        ending: Ending::Failed,
        exit_code: 1,
        task: None,
        reason: format!("{role}: {}", explanation.cause),
        remedy: Some(explanation.remedy),
    }
}

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

fn waited(since: Timestamp, now: Timestamp) -> Duration {
    now.duration_since(since)
        .try_into()
        .unwrap_or(Duration::ZERO)
}

fn finished(pod: &PodEvidence) -> Timestamp {
    pod.finished_at().unwrap_or(Timestamp::MAX)
}

fn was_killed(pod: &PodEvidence) -> bool {
    pod.metadata.deletion_timestamp.is_some()
        || pod.ended().is_some_and(|ended| {
            matches!(ended.exit_code, 137 | 143) && ended.reason != "OOMKilled"
        })
}

/// The outcome of a run whose first failed task this pod was. `last_line` is
/// the last line of its log, once that has been read.
pub(crate) fn failed_outcome(pod: &PodEvidence, last_line: Option<&str>) -> Outcome {
    let (explanation, ran) = explain::failure(pod, last_line);
    if !ran {
        return not_started(pod.task(), &explanation);
    }
    let code = pod.ended().map_or(1, |ended| ended.exit_code);
    Outcome {
        ending: Ending::Failed,
        // A failed run does not exit with 0, whatever the pod says.
        exit_code: if code == 0 { 1 } else { code },
        reason: named(pod.task().as_ref(), &explanation.cause),
        task: pod.task(),
        remedy: Some(explanation.remedy),
    }
}

fn not_started(task: Option<Task>, explanation: &Explanation) -> Outcome {
    Outcome {
        ending: Ending::NotStarted,
        exit_code: 4,
        reason: named(task.as_ref(), &explanation.cause),
        task,
        remedy: Some(explanation.remedy.clone()),
    }
}

fn named(task: Option<&Task>, cause: &str) -> String {
    task.map_or_else(|| cause.to_owned(), |task| format!("{task}: {cause}"))
}

#[cfg(test)]
#[path = "track_tests.rs"]
mod tests;
