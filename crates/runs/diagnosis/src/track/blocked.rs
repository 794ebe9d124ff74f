//! Causes that block tasks from starting, with their times.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use longshore_model::facts::PodFacts;

use super::{Step, Track, waited};
use crate::evidence::RunPod as _;
use crate::{
    evidence::JobEvidence,
    explain::{self, Cause, ClusterEvidence, Explanation, WaitLimit},
    outcome::Outcome,
    role::RunRole,
};

/// A blocked pod or role.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Held {
    /// The pod with this uid.
    Pod(String),
    /// The role whose Job cannot create its pods.
    Role(String),
}

/// A blocking cause, the time that it may last, and the time when it began.
pub(super) struct Stuck {
    pub(super) why: Explanation,
    pub(super) limit: WaitLimit,
    pub(super) since: Timestamp,
}

impl Track {
    /// Records the cause that blocks a pod or role. The start time is kept if the cause belongs to
    /// the same family.
    pub(super) fn hold(
        &mut self,
        who: Held,
        found: Option<(Explanation, WaitLimit)>,
        now: Timestamp,
        steps: &mut Vec<Step>,
    ) {
        let Some((why, limit)) = found else {
            self.stuck.remove(&who);
            return;
        };
        let known = self.stuck.get(&who);
        let same = known.filter(|known| known.why.kind.family() == why.kind.family());
        let since = same.map_or(now, |known| known.since);
        // Keep the more specific of two causes of the same family.
        if same.is_some_and(|known| why.kind.is_general() && !known.why.kind.is_general()) {
            return;
        }
        // Intended waits are not reported, except for a queue, because it is unknown when the queue
        // admits the run.
        let is_news = known.is_none_or(|known| known.why.kind != why.kind);
        // Tasks of a sweep wait for the resources of others.
        let is_usual = is_news && limit == WaitLimit::StartTimeout && self.idle_since().is_none();
        if is_news && !is_usual && (why.kind == Cause::Queued || !why.kind.is_meant()) {
            steps.push(Step::Waiting(why.clone()));
        }
        self.stuck.insert(who, Stuck { why, limit, since });
    }

    /// Re-evaluates everything that has not started, with the evidence from the cluster.
    pub(super) fn recheck_waits(&mut self, now: Timestamp, steps: &mut Vec<Step>) {
        let pods = self.pods.iter().map(|(uid, pod)| {
            let found = explain::stuck(pod, &self.cluster);
            (Held::Pod(uid.clone()), found)
        });
        let jobs = self.jobs.iter().map(|(role, job)| {
            let found = explain::no_pods(job, &self.cluster);
            (Held::Role(role.clone()), found)
        });
        let found: Vec<_> = pods.chain(jobs).collect();
        for (who, found) in found {
            self.hold(who, found, now, steps);
        }
    }

    /// Returns true if something has waited so long that the cluster should be queried for the
    /// cause.
    pub fn needs_cause(&self, now: Timestamp) -> bool {
        const SOON: Duration = Duration::from_secs(2);
        if !self.synced || self.decided {
            return false;
        }
        let waits = self
            .unstarted
            .values()
            .any(|since| waited(*since, now) >= SOON);
        let lacks = |role: &RunRole| {
            let goes_on = self
                .jobs
                .get(&role.name)
                .is_some_and(|job| !job.is_over() && !job.spec.suspend);
            let job = self.jobs.get(&role.name);
            let independent = job.filter(|job| job.is_independent());
            let counts = |pod: &PodFacts| independent.is_none() || !pod.is_over();
            let pods = self.pods_of(&role.name).filter(|(_, pod)| counts(pod));
            let wanted = independent.map_or_else(|| self.count(role), JobEvidence::wanted);
            goes_on && u32::try_from(pods.count()).is_ok_and(|pods| pods < wanted)
        };
        waits || (waited(self.began, now) >= SOON && self.roles.iter().any(lacks))
    }

    /// Reverts a premature decision.
    pub fn reconsider(&mut self) {
        self.decided = false;
    }

    /// The active pods whose uids are not in `there`.
    pub fn pods_but(&self, there: &BTreeSet<&str>) -> Vec<String> {
        let pods = self.pods.iter();
        let gone = pods.filter(|(uid, pod)| !pod.is_over() && !there.contains(uid.as_str()));
        gone.map(|(uid, _)| uid.clone()).collect()
    }

    /// Repeats the decision with further evidence from the cluster.
    pub fn redecide(&mut self, cluster: ClusterEvidence, now: Timestamp) -> Option<Outcome> {
        let nodes = self.cluster.nodes.take();
        self.cluster = cluster;
        self.cluster.nodes = self.cluster.nodes.take().or(nodes);
        self.recheck_waits(now, &mut Vec::new());
        let mut steps = Vec::new();
        self.decided = false;
        self.decide(now, &mut steps);
        self.decided = true;
        steps.into_iter().find_map(|step| match step {
            Step::Decided { outcome, .. } => Some(outcome),
            _ => None,
        })
    }
}
