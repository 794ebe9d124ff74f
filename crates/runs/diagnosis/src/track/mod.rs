//! The state machine of a followed run: evidence in, steps out. The time is an argument, and
//! callers execute the steps.

mod blocked;
mod decide;
mod leftovers;
mod outcome;
mod retries;
mod span;
mod verdict;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use longshore_model::facts::PodFacts;

use crate::evidence::RunPod as _;
use crate::{
    evidence::{JobEvidence, index_set},
    explain::{self, ClusterEvidence, Explanation},
    names::Task,
    outcome::{Outcome, Retry},
    progress::{Progress, RoleProgress},
    role::RunRole,
};

use blocked::{Held, Stuck};
pub use outcome::{known_end, recorded};
pub use verdict::{Verdict, decide_now};

/// An input of the state machine.
#[derive(Debug, Clone)]
pub enum Seen {
    /// A pod was created or changed.
    Pod(Box<PodFacts>),
    /// The pod with this uid was deleted.
    PodGone(String),
    /// A Job was created or changed.
    Job(Box<JobEvidence>),
    /// The Job of this role was deleted.
    JobGone(String),
    /// Further evidence from the cluster, queried because something waits.
    Cluster(Box<ClusterEvidence>),
    /// All objects that existed at the start have been processed.
    Synced,
    /// Time has passed.
    Tick,
}

/// An output of the state machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The progress has changed.
    Progress(Progress),
    /// A task cannot start, or the cause has changed.
    Waiting(Explanation),
    /// An attempt has failed and is retried.
    Retry(Retry),
    /// Read the log of a pod's container.
    Read {
        /// The uid of the pod.
        uid: String,
        /// The name of the pod.
        pod: String,
        /// The task that the pod runs.
        task: Task,
        /// The number of the pod's attempt of the task, from 1.
        attempt: u32,
        /// The name of the container.
        container: String,
        /// True if the container runs the command.
        is_main: bool,
    },
    /// The pod of an attempt was deleted before it was seen, together with its log.
    Unread {
        /// The task.
        task: Task,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// The pod has ended, so its log is complete.
    Ended {
        /// The uid of the pod.
        uid: String,
    },
    /// The outcome is decided. Each watch may lag behind, so a caller that uses watches must list
    /// all objects and evaluate them again ([`Track::reconsider`]) before it acts on the outcome.
    Decided {
        /// The outcome.
        outcome: Outcome,
        /// The uids of the pods whose logs belong to the decision and must be read to the end.
        evidence: BTreeSet<String>,
    },
}

/// The state of a followed run.
///
/// ```
/// use std::time::Duration;
///
/// use longshore_diagnosis::{
///     explain::Cause,
///     outcome::Ending,
///     role::RunRole,
///     track::{Seen, Step, Track},
/// };
///
/// let worker = RunRole { name: "worker".into(), count: 1, service: false };
/// let began = jiff::Timestamp::UNIX_EPOCH;
/// let mut track = Track::new(vec![worker], Duration::from_secs(600), began);
/// let job = serde_json::from_value(serde_json::json!({
///     "metadata": {"name": "digits-worker", "labels": {"longshore.dev/role": "worker"}},
/// }))?;
/// track.see(Seen::Job(Box::new(job)), began);
/// track.see(Seen::Synced, began);
/// // No pod is created within ten minutes.
/// let steps = track.see(Seen::Tick, began + Duration::from_secs(601));
/// let [Step::Decided { outcome, .. }] = &steps[..] else {
///     panic!("{steps:?}")
/// };
/// assert_eq!(outcome.ending, Ending::NotStarted);
/// assert_eq!(outcome.explanation.as_ref().map(|why| why.kind), Some(Cause::NoPods));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub struct Track {
    roles: Vec<RunRole>,
    start_timeout: Duration,
    began: Timestamp,
    synced: bool,
    pods: BTreeMap<String, PodFacts>,
    jobs: BTreeMap<String, JobEvidence>,
    cluster: ClusterEvidence,
    /// The cause that blocks a pod, or the Job of a role.
    stuck: BTreeMap<Held, Stuck>,
    /// The time when a pod that has not started was first seen.
    unstarted: BTreeMap<String, Timestamp>,
    /// The time when a suspended Job of a role was resumed, for example by a queue.
    admitted: BTreeMap<String, Timestamp>,
    reading: BTreeSet<(String, String)>,
    /// The attempts of each task whose pods were seen, or reported as not seen.
    attempts: BTreeMap<Task, BTreeSet<u32>>,
    /// Pods whose failure was reported while their Job is still active.
    retried: Option<BTreeSet<String>>,
    ended: BTreeSet<String>,
    progress: Option<Progress>,
    decided: bool,
    /// The time when a role's Job was first seen to have ended or been stopped.
    job_over: BTreeMap<String, Timestamp>,
    /// Roles whose Job is evaluated without evidence of its pods.
    settled: BTreeSet<String>,
    /// The time to wait for the pods of a Job that has ended.
    grace: Duration,
}

/// The default time to wait. Jobs and pods come from two watches, so the end of a Job may arrive
/// before the end of the pods that caused it.
const GRACE: Duration = Duration::from_secs(2);

/// The maximum number of earlier attempts of a pod that are reported as not seen.
const MAX_UNREAD: u32 = 100;

/// A task's state, from its pods and its Job.
enum State<'a> {
    Pending,
    Running,
    Succeeded,
    /// The task failed according to its Job, and its pod is gone.
    Lost,
    Failed {
        pod: &'a PodFacts,
        /// True if the task's own failures ended its Job, and not another task's failures.
        is_cause: bool,
    },
}

impl Track {
    /// The state before any evidence is known. `start_timeout` is the maximum time until a task
    /// starts, counted from `began` at the earliest.
    pub fn new(roles: Vec<RunRole>, start_timeout: Duration, began: Timestamp) -> Self {
        Self {
            roles,
            start_timeout,
            began,
            synced: false,
            pods: BTreeMap::new(),
            jobs: BTreeMap::new(),
            cluster: ClusterEvidence::default(),
            stuck: BTreeMap::new(),
            unstarted: BTreeMap::new(),
            admitted: BTreeMap::new(),
            reading: BTreeSet::new(),
            attempts: BTreeMap::new(),
            retried: None,
            ended: BTreeSet::new(),
            progress: None,
            decided: false,
            job_over: BTreeMap::new(),
            settled: BTreeSet::new(),
            grace: GRACE,
        }
    }

    /// The pod with this uid.
    pub fn pod(&self, uid: &str) -> Option<&PodFacts> {
        self.pods.get(uid)
    }

    /// Processes an input. Returns the steps for the caller to execute.
    pub fn see(&mut self, seen: Seen, now: Timestamp) -> Vec<Step> {
        let mut steps = self.record(seen, now);
        steps.extend(self.evaluate(now));
        steps
    }

    /// Processes an input without [`Track::evaluate`], whose time is proportional to the number of
    /// tasks. Of many inputs, only the last one needs it.
    pub fn record(&mut self, seen: Seen, now: Timestamp) -> Vec<Step> {
        let mut steps = Vec::new();
        match seen {
            Seen::Pod(pod) => self.see_pod(*pod, now, &mut steps),
            Seen::PodGone(uid) => {
                self.stuck.remove(&Held::Pod(uid.clone()));
                self.unstarted.remove(&uid);
                self.end(&uid, &mut steps);
                // Deleting a succeeded pod does not undo its success.
                if self.pods.get(&uid).is_some_and(|pod| !pod.is_over()) {
                    self.pods.remove(&uid);
                }
            }
            Seen::Job(job) => {
                if let Some(role) = job.role().map(str::to_owned) {
                    let before = self.jobs.get(&role);
                    if before.is_some_and(|before| before.spec.suspend) && !job.spec.suspend {
                        self.admitted.insert(role.clone(), now);
                    }
                    let found = explain::no_pods(&job, &self.cluster);
                    self.hold(Held::Role(role.clone()), found, now, &mut steps);
                    self.jobs.insert(role, *job);
                }
            }
            Seen::JobGone(role) => {
                // A JobSet deletes its Jobs and creates them again when it restarts.
                let again = self
                    .jobs
                    .get(&role)
                    .is_some_and(JobEvidence::is_created_again);
                if !again {
                    self.jobs.remove(&role);
                }
                self.stuck.remove(&Held::Role(role));
            }
            Seen::Cluster(cluster) => {
                let nodes = self.cluster.nodes.take();
                self.cluster = *cluster;
                self.cluster.nodes = self.cluster.nodes.take().or(nodes);
                self.recheck_waits(now, &mut steps);
            }
            Seen::Synced => self.synced = true,
            Seen::Tick => {}
        }
        steps
    }

    /// Reports changes of the progress, the retries and the outcome.
    pub fn evaluate(&mut self, now: Timestamp) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.synced {
            self.settle(now);
            self.report(&mut steps);
            self.report_retries(&mut steps);
            self.decide(now, &mut steps);
        }
        steps
    }

    fn settle(&mut self, now: Timestamp) {
        let is_over = |job: &JobEvidence| job.is_over() || job.is_stopped();
        for (role, job) in self.jobs.iter().filter(|(_, job)| is_over(job)) {
            let seen = *self.job_over.entry(role.clone()).or_insert(now);
            let since = job.over_since().or_else(|| job.stopped_at());
            let since = since.map_or(seen, |since| since.min(seen));
            if waited(since, now) >= self.grace {
                self.settled.insert(role.clone());
            }
        }
    }

    fn see_pod(&mut self, pod: PodFacts, now: Timestamp, steps: &mut Vec<Step>) {
        let Some(task) = pod.task() else { return };
        let uid = pod.metadata.uid.clone();
        let main = pod.main_name();
        let attempt = pod.attempts_before().saturating_add(1);
        self.see_attempt(&task, attempt, steps);
        let mut read = |container: &str| {
            if self.reading.insert((uid.clone(), container.to_owned())) {
                steps.push(Step::Read {
                    uid: uid.clone(),
                    pod: pod.metadata.name.clone(),
                    task: task.clone(),
                    attempt,
                    container: container.to_owned(),
                    is_main: container == main,
                });
            }
        };
        if pod.has_started() {
            read(main);
        } else if let Some((container, _)) = pod.failed_init().filter(|_| pod.is_over()) {
            read(container);
        }
        if pod.is_over() {
            self.end(&uid, steps);
        }
        let found = explain::stuck(&pod, &self.cluster);
        self.hold(Held::Pod(uid.clone()), found, now, steps);
        if explain::is_idle(&pod) {
            self.unstarted.entry(uid.clone()).or_insert(now);
        } else {
            self.unstarted.remove(&uid);
        }
        self.pods.insert(uid, pod);
    }

    /// Reports the attempts before this one whose pods were not seen.
    fn see_attempt(&mut self, task: &Task, attempt: u32, steps: &mut Vec<Step>) {
        let known = self.attempts.entry(task.clone()).or_default();
        if !known.insert(attempt) {
            return;
        }
        // Any client can write the counts of a pod.
        let first = attempt.saturating_sub(MAX_UNREAD).max(1);
        for earlier in (first..attempt).filter(|earlier| known.insert(*earlier)) {
            steps.push(Step::Unread {
                task: task.clone(),
                attempt: earlier,
            });
        }
    }

    fn end(&mut self, uid: &str, steps: &mut Vec<Step>) {
        if self.ended.insert(uid.to_owned()) {
            steps.push(Step::Ended {
                uid: uid.to_owned(),
            });
        }
    }

    fn pods_of(&self, role: &str) -> impl Iterator<Item = (u32, &PodFacts)> {
        self.pods.values().filter_map(move |pod| {
            let task = pod.task().filter(|task| task.role == role)?;
            Some((task.index, pod))
        })
    }

    /// The number of tasks of a role, from its Job, which may have been scaled.
    fn count(&self, role: &RunRole) -> u32 {
        let job = self.jobs.get(&role.name);
        let completions = job.and_then(|job| job.spec.completions);
        completions.unwrap_or(role.count)
    }

    fn states(&self, role: &RunRole) -> Vec<State<'_>> {
        let job = self.jobs.get(&role.name);
        let complete = self.has_recorded_success(role)
            || job.is_some_and(JobEvidence::is_complete) && self.settled.contains(&role.name);
        let count = usize::try_from(self.count(role)).unwrap_or_default();
        let of_status = |set: fn(&JobEvidence) -> &str| {
            let job = job.filter(|job| job.is_independent());
            job.map(|job| index_set(set(job), count))
                .unwrap_or_default()
        };
        let completed = of_status(|job| &job.status.completed_indexes);
        let failed = of_status(|job| &job.status.failed_indexes);
        let has = |set: &[bool], index: usize| set.get(index).copied().unwrap_or_default();
        let mut states: Vec<State<'_>> = (0..count)
            .map(|index| {
                if complete || has(&completed, index) {
                    State::Succeeded
                } else if has(&failed, index) {
                    State::Lost
                } else {
                    State::Pending
                }
            })
            .collect();
        for (index, attempts) in self.attempts(&role.name) {
            let Some(state) = states.get_mut(index as usize) else {
                continue;
            };
            // A replaced pod does not count: the newest pod decides, unless one has already
            // succeeded.
            let done = attempts.iter().find(|pod| pod.has_succeeded());
            let Some(pod) = done.or(attempts.last()).copied() else {
                continue;
            };
            if pod.has_succeeded() {
                *state = State::Succeeded;
            } else if matches!(state, State::Succeeded) {
                // The Job records the success of a deleted pod.
            } else if pod.has_failed() {
                // A deleted pod ends by a signal. It is a failure of the task only if the Job has
                // failed, too.
                let deleted = pod.metadata.deletion_timestamp.is_some();
                let counts =
                    |pod: &&&PodFacts| pod.has_failed() && job.is_none_or(|job| !job.ignores(pod));
                let failures = attempts.iter().filter(counts).count();
                // Earlier pods may be gone.
                let before = usize::try_from(pod.failures_before()).unwrap_or(usize::MAX);
                let with_own = before.saturating_add(usize::from(counts(&&pod)));
                let failures = failures.max(with_own);
                let gives_up = job.is_some_and(|job| job.gives_up(failures));
                let is_stopped = deleted && job.is_none_or(|job| job.failure().is_none());
                if has(&failed, index as usize) || (gives_up && !is_stopped) {
                    let is_cause = job.is_some_and(|job| job.ends_with(pod, failures));
                    *state = State::Failed { pod, is_cause };
                }
            } else if pod.has_started() {
                *state = State::Running;
            }
        }
        states
    }

    /// The pods of each task of a role, the oldest first.
    fn attempts(&self, role: &str) -> BTreeMap<u32, Vec<&PodFacts>> {
        let mut attempts: BTreeMap<u32, Vec<&PodFacts>> = BTreeMap::new();
        // A JobSet that restarts creates another Job with the same name.
        let job = self
            .jobs
            .get(role)
            .filter(|job| job.set_restarts().is_some());
        let is_current = |pod: &PodFacts| {
            let owner = pod.metadata.controller().map(|owner| &owner.uid);
            job.is_none_or(|job| owner == Some(&job.metadata.uid))
        };
        for (index, pod) in self.pods_of(role).filter(|(_, pod)| is_current(pod)) {
            attempts.entry(index).or_default().push(pod);
        }
        for pods in attempts.values_mut() {
            pods.sort_by_key(|pod| (pod.metadata.creation_timestamp, finished(pod)));
        }
        attempts
    }

    /// Returns true if a failed task of the role does not end the others.
    fn is_independent(&self, role: &RunRole) -> bool {
        let job = self.jobs.get(&role.name);
        job.is_some_and(JobEvidence::is_independent)
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
                independent: self.is_independent(role),
                ..RoleProgress::default()
            };
            for state in self.states(role) {
                match state {
                    State::Pending => progress.pending += 1,
                    State::Running => progress.running += 1,
                    State::Succeeded => progress.succeeded += 1,
                    State::Failed { .. } | State::Lost => progress.failed += 1,
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
}

fn waited(since: Timestamp, now: Timestamp) -> Duration {
    now.duration_since(since)
        .try_into()
        .unwrap_or(Duration::ZERO)
}

fn finished(pod: &PodFacts) -> Timestamp {
    pod.finished_at().unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
