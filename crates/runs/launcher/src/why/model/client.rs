//! A client of the model that follows a run, and the oracle of how the run ends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use longshore_diagnosis::{
    evidence::{JobEvidence, RunPod as _},
    outcome::{Ending, Outcome},
    role::RunRole,
    track::{self, Seen, Step, Track},
};
use longshore_model::facts::PodFacts;
use serde_json::Value;

use super::{
    cluster::{Cluster, at},
    scenario::{Policy, Scenario},
};
use crate::runs;

/// The time that pods linger before they are ended, in seconds.
const LINGER: i64 = 5;

pub(super) fn roles(scenario: &Scenario) -> Vec<RunRole> {
    let roles = scenario.roles.iter();
    let role = |role: &super::scenario::Role| RunRole {
        name: role.name.to_owned(),
        count: u32::try_from(role.tasks.len()).unwrap(),
        service: role.is_service,
    };
    roles.map(role).collect()
}

pub(super) fn jobs(cluster: &Cluster) -> Vec<JobEvidence> {
    let objects = cluster.job_objects().into_values();
    objects
        .map(|object| serde_json::from_value(object).unwrap())
        .collect()
}

pub(super) fn pods(cluster: &Cluster) -> Vec<PodFacts> {
    let objects = cluster.pod_objects().into_values();
    objects
        .map(|object| serde_json::from_value(object).unwrap())
        .collect()
}

/// Records the end of a run like clients do: the first recorded end decides.
pub(super) fn record(cluster: &mut Cluster, outcome: &Outcome) -> Outcome {
    if let Some(known) = track::known_end(&jobs(cluster)) {
        return known;
    }
    if matches!(outcome.ending, Ending::Succeeded | Ending::Failed) {
        let first = (0..cluster.jobs.len()).min_by_key(|job| cluster.role_name(*job));
        note(cluster, first.unwrap(), outcome);
    }
    outcome.clone()
}

fn note(cluster: &mut Cluster, job: usize, outcome: &Outcome) {
    let notes = runs::notes(outcome, at(cluster.now));
    let notes = notes.as_object().unwrap().iter();
    let notes = notes.map(|(key, text)| (key.clone(), text.as_str().unwrap().to_owned()));
    cluster.jobs[job].annotations.extend(notes);
}

/// Stops Jobs, except the Job whose command failed if it ends by itself.
pub(super) fn stop(cluster: &mut Cluster, names: &BTreeSet<String>, outcome: &Outcome) {
    let evidence = jobs(cluster);
    for job in 0..cluster.jobs.len() {
        let name = format!("run-x-{}", cluster.role_name(job));
        if !names.contains(&name) {
            continue;
        }
        note(cluster, job, outcome);
        let failed = outcome.task.as_ref().map(|task| task.role.as_str());
        let own = evidence.iter().find(|own| own.metadata.name == name);
        let is_own = outcome.ending == Ending::Failed
            && failed == Some(cluster.role_name(job))
            && own.is_some_and(JobEvidence::fails_by_itself);
        cluster.jobs[job].is_suspended |= !is_own;
    }
}

/// Ends a pod with the result of its command.
pub(super) fn end_pod(cluster: &mut Cluster, uid: &str) {
    let facts = pods(cluster);
    let facts = facts.iter().find(|pod| pod.metadata.uid == uid);
    let pod = cluster.pods.iter_mut().find(|pod| pod.uid == uid);
    if let (Some(facts), Some(pod)) = (facts, pod)
        && facts.lingers()
    {
        pod.phase = if facts.has_succeeded() {
            "Succeeded"
        } else {
            "Failed"
        };
    }
}

/// A client that follows the run.
pub(super) struct Client {
    track: Track,
    pub(super) outcome: Option<Outcome>,
    is_listed: bool,
    known: BTreeMap<String, Value>,
    late: VecDeque<(i64, Seen)>,
    lingering: BTreeMap<String, i64>,
}

impl Client {
    /// Attaches to the run.
    pub(super) fn attach(cluster: &mut Cluster) -> Self {
        let track = Track::new(
            roles(&cluster.scenario),
            std::time::Duration::from_secs(100_000),
            at(cluster.now),
        );
        let mut client = Self {
            track,
            outcome: None,
            is_listed: false,
            known: BTreeMap::new(),
            late: VecDeque::new(),
            lingering: BTreeMap::new(),
        };
        client.observe(cluster, (0, 0));
        client.deliver(cluster);
        client.see(Seen::Synced, cluster);
        client
    }

    /// A second has passed.
    pub(super) fn tick(&mut self, cluster: &mut Cluster) {
        self.is_listed = false;
        let lag = cluster.scenario.clients.lag;
        self.observe(cluster, lag);
        self.deliver(cluster);
        self.see(Seen::Tick, cluster);
        if cluster.scenario.clients.may_end {
            let lingering = self.track.lingering().into_iter();
            let uids: BTreeSet<String> = lingering.map(|pod| pod.metadata.uid.clone()).collect();
            self.lingering.retain(|uid, _| uids.contains(uid));
            for uid in uids {
                let since = *self.lingering.entry(uid.clone()).or_insert(cluster.now);
                if cluster.now - since >= LINGER {
                    end_pod(cluster, &uid);
                }
            }
        }
    }

    /// Queues the changes. Pods and Jobs come from two watches.
    fn observe(&mut self, cluster: &Cluster, (pods, jobs): (i64, i64)) {
        let mut now = cluster.pod_objects();
        let named = |(role, job)| (format!("job {role}"), job);
        now.extend(cluster.job_objects().into_iter().map(named));
        let gone: Vec<String> = self.known.keys().cloned().collect();
        for uid in gone.iter().filter(|uid| !now.contains_key(*uid)) {
            self.late
                .push_back((cluster.now + pods, Seen::PodGone(uid.clone())));
        }
        for (key, object) in &now {
            if self.known.get(key) == Some(object) {
                continue;
            }
            let (lag, seen) = match key.starts_with("job ") {
                true => (
                    jobs,
                    Seen::Job(Box::new(serde_json::from_value(object.clone()).unwrap())),
                ),
                false => (
                    pods,
                    Seen::Pod(Box::new(serde_json::from_value(object.clone()).unwrap())),
                ),
            };
            self.late.push_back((cluster.now + lag, seen));
        }
        self.known = now;
    }

    fn deliver(&mut self, cluster: &mut Cluster) {
        let (due, late): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.late)
            .into_iter()
            .partition(|(when, _)| *when <= cluster.now);
        self.late = late;
        for (_, seen) in due {
            self.see(seen, cluster);
        }
    }

    fn see(&mut self, seen: Seen, cluster: &mut Cluster) {
        for step in self.track.see(seen, at(cluster.now)) {
            let Step::Decided { outcome, .. } = step else {
                continue;
            };
            if self.is_listed {
                self.decide(outcome, cluster);
            } else {
                self.track.reconsider();
                self.list(cluster);
            }
        }
    }

    /// Lists all objects, because the watches may lag behind.
    fn list(&mut self, cluster: &mut Cluster) {
        self.is_listed = true;
        self.late.clear();
        let (jobs, pods) = (jobs(cluster), pods(cluster));
        let there: BTreeSet<&str> = pods.iter().map(|pod| pod.metadata.uid.as_str()).collect();
        let mut all: Vec<Seen> = self
            .track
            .pods_but(&there)
            .into_iter()
            .map(Seen::PodGone)
            .collect();
        all.extend(jobs.into_iter().map(|job| Seen::Job(Box::new(job))));
        all.extend(pods.iter().cloned().map(|pod| Seen::Pod(Box::new(pod))));
        for seen in all {
            self.track.record(seen, at(cluster.now));
        }
        self.see(Seen::Tick, cluster);
    }

    fn decide(&mut self, outcome: Outcome, cluster: &mut Cluster) {
        let going_on: BTreeSet<String> = self
            .track
            .going_on()
            .iter()
            .map(|job| job.metadata.name.clone())
            .collect();
        let lingers = !self.track.lingering().is_empty();
        let is_recorded = match outcome.ending {
            Ending::Cancelled => false,
            Ending::Succeeded => lingers || !going_on.is_empty(),
            Ending::Failed | Ending::NotStarted => true,
        };
        let decided = match outcome.ending {
            Ending::Cancelled => outcome,
            _ if is_recorded => record(cluster, &outcome),
            _ => track::known_end(&jobs(cluster)).unwrap_or(outcome),
        };
        if is_recorded && decided.ending != Ending::Cancelled {
            stop(cluster, &going_on, &decided);
        }
        self.outcome = Some(decided);
    }
}

/// The endings and exit codes that are correct at this time, based on the ends of the commands.
/// `None` if the run has not ended. Several if they happened at the same time.
pub(super) fn oracle(
    cluster: &Cluster,
    cancelled: Option<i64>,
) -> Option<BTreeSet<(&'static str, i32)>> {
    let scenario = &cluster.scenario;
    let limit = match scenario.policy {
        Policy::Once => 0,
        Policy::Retries(limit) | Policy::Sweep(limit) => limit,
    };
    let mut events: Vec<(i64, &'static str, i32)> = Vec::new();
    let mut ended: Vec<Option<i64>> = Vec::new();
    let mut succeeded: Vec<Option<i64>> = Vec::new();
    let mut failed: Vec<(i64, i32, bool)> = Vec::new();
    for (role, spec) in scenario.roles.iter().enumerate() {
        for index in 0..spec.tasks.len() {
            let own = cluster.ends.iter();
            let own = own.filter(|end| end.role == role && end.index == index);
            let own: Vec<_> = own.collect();
            let (mut failures, mut success, mut failure) = (0, None, None::<(i64, i32, bool)>);
            for end in &own {
                if end.code == 0 {
                    success.get_or_insert(end.at);
                } else if !(end.is_disrupted && limit > 0) {
                    failures += 1;
                    if failures > limit {
                        failure.get_or_insert((end.at, end.code, end.is_killed));
                    }
                }
            }
            if let Some((at, code, is_killed)) = failure {
                failed.push((at, code, is_killed));
                // If another client deletes a pod, only its Job and earlier pods of the task
                // remain.
                if is_killed {
                    let earlier = own.iter().map(|end| end.code).filter(|code| *code != 0);
                    failed.extend(earlier.chain([1]).map(|code| (at, code, true)));
                }
            }
            if !spec.is_service {
                succeeded.push(success);
                ended.push(success.or(failure.map(|(at, ..)| at)));
            }
        }
    }
    let all = |times: &[Option<i64>]| -> Option<i64> {
        let times: Option<Vec<i64>> = times.iter().copied().collect();
        times?.into_iter().max()
    };
    events.extend(all(&succeeded).map(|at| (at, "succeeded", 0)));
    if let Policy::Sweep(_) = scenario.policy {
        // The exit code of the first failure whose pod exists.
        let kept = failed.iter().filter(|(.., is_killed)| !is_killed);
        let first = kept.map(|(at, ..)| *at).min().unwrap_or(i64::MAX);
        for (_, code, _) in failed.iter().filter(|(at, ..)| *at <= first) {
            events.extend(all(&ended).map(|at| (at, "failed", *code)));
        }
    } else {
        events.extend(failed.iter().map(|(at, code, _)| (*at, "failed", *code)));
    }
    events.extend(cluster.overdue.map(|at| (at, "failed", 1)));
    events.extend(cancelled.map(|at| (at, "cancelled", 130)));
    let first = events.iter().map(|(at, ..)| *at).min()?;
    let at_once = events.into_iter().filter(|(at, ..)| *at == first);
    Some(at_once.map(|(_, ending, code)| (ending, code)).collect())
}
