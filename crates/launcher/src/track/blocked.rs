//! What keeps tasks from starting, and since when.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;

use super::{Step, Track, waited};
use crate::{
    explain::{self, Around, Cause, Explanation, Patience},
    outcome::Outcome,
    run::RunRole,
};

/// Who is held up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Held {
    /// The pod with this uid.
    Pod(String),
    /// The role, whose Job cannot make its pods.
    Role(String),
}

/// What holds it up, how long that may last, and since when it has been seen.
pub(super) struct Stuck {
    pub(super) why: Explanation,
    pub(super) patience: Patience,
    pub(super) since: Timestamp,
}

impl Track {
    /// Records what holds a pod or a role up. The time goes on while the cause is the
    /// same in other words.
    pub(super) fn hold(
        &mut self,
        who: Held,
        found: Option<(Explanation, Patience)>,
        now: Timestamp,
        steps: &mut Vec<Step>,
    ) {
        let Some((why, patience)) = found else {
            self.stuck.remove(&who);
            return;
        };
        let known = self.stuck.get(&who);
        let same = known.filter(|known| known.why.kind.family() == why.kind.family());
        let since = same.map_or(now, |known| known.since);
        // The more telling of two messages about the same stays.
        if same.is_some_and(|known| why.kind.is_general() && !known.why.kind.is_general()) {
            return;
        }
        // Suspension is not reported: whoever did it knows. When a queue
        // admits the run, no one knows.
        let is_news = known.is_none_or(|known| known.why.kind != why.kind);
        if is_news && (why.kind == Cause::Queued || !why.kind.is_meant()) {
            steps.push(Step::Waiting(why.clone()));
        }
        self.stuck.insert(
            who,
            Stuck {
                why,
                patience,
                since,
            },
        );
    }

    /// All that has not started, seen with what else the cluster knows.
    pub(super) fn recheck_waits(&mut self, now: Timestamp, steps: &mut Vec<Step>) {
        let pods = self.pods.iter().map(|(uid, pod)| {
            let found = explain::stuck(pod, &self.around);
            (Held::Pod(uid.clone()), found)
        });
        let jobs = self.jobs.iter().map(|(role, job)| {
            let found = explain::no_pods(job, &self.around);
            (Held::Role(role.clone()), found)
        });
        let found: Vec<_> = pods.chain(jobs).collect();
        for (who, found) in found {
            self.hold(who, found, now, steps);
        }
    }

    /// Whether something has waited so long that the cluster should be asked
    /// what else it knows.
    pub(crate) fn needs_cause(&self, now: Timestamp) -> bool {
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
            let pods = self.pods_of(&role.name).count();
            goes_on && u32::try_from(pods).is_ok_and(|pods| pods < self.count(role))
        };
        waits || (waited(self.began, now) >= SOON && self.roles.iter().any(lacks))
    }

    /// The decision is taken back: it was made too soon.
    pub(crate) fn reconsider(&mut self) {
        self.decided = false;
    }

    /// The pods that are not over and not among these.
    pub(crate) fn pods_but(&self, there: &BTreeSet<&str>) -> Vec<String> {
        let pods = self.pods.iter();
        let gone = pods.filter(|(uid, pod)| !pod.is_over() && !there.contains(uid.as_str()));
        gone.map(|(uid, _)| uid.clone()).collect()
    }

    /// The decision once more, with what else the cluster knows by now.
    pub(crate) fn redecide(&mut self, around: Around, now: Timestamp) -> Option<Outcome> {
        let nodes = self.around.nodes.take();
        self.around = around;
        self.around.nodes = self.around.nodes.take().or(nodes);
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
