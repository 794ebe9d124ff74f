//! A model test of the end of runs. A run and its events are generated, and executed by a small
//! model of the cluster. All readers of the run must agree on its end: a client that follows it, a
//! client that attaches later, the list of runs, `why`, and an oracle that only knows the ends of
//! the commands.
#![allow(clippy::unwrap_used)]

mod client;
mod cluster;
mod scenario;

use std::collections::{BTreeMap, BTreeSet};

use longshore_diagnosis::evidence::RunPod as _;
use longshore_diagnosis::{
    explain::ClusterEvidence,
    names::RunName,
    outcome::{Ending, Outcome},
    track::{self, Verdict},
};
use proptest::prelude::*;

use self::{
    client::{Client, end_pod, jobs, oracle, pods, record, roles, stop},
    cluster::{Cluster, at},
    scenario::{Scenario, scenarios},
};
use super::{RunEvidence, diagnose};
use crate::{run::Run, runs};

/// The time for which a run is executed, in seconds.
const LENGTH: i64 = 32;
/// The times in seconds that pods may linger, and after which the cluster stops the remaining Jobs
/// of a run.
const LINGER: i64 = 5;
const LEFTOVERS: i64 = 3;

fn verdict(cluster: &Cluster) -> Verdict {
    let (jobs, pods) = (jobs(cluster), pods(cluster));
    let roles = roles(&cluster.scenario);
    let (jobs, pods): (Vec<_>, Vec<_>) = (jobs.iter().collect(), pods.iter().collect());
    track::decide_now(&roles, &jobs, &pods, &ClusterEvidence::default(), at(0))
}

fn words(outcome: &Outcome) -> (&'static str, i32) {
    let ending = match outcome.ending {
        Ending::Succeeded => "succeeded",
        Ending::Failed => "failed",
        Ending::NotStarted => "not started",
        Ending::Cancelled => "cancelled",
    };
    (ending, outcome.exit_code)
}

/// The execution of a run.
struct Execution {
    cluster: Cluster,
    client: Option<Client>,
    cancelled: Option<i64>,
    lingering: BTreeMap<String, i64>,
    ended_since: Option<i64>,
    /// True if pods were deleted that alone showed the end of a command.
    is_evidence_lost: bool,
}

impl Execution {
    fn new(scenario: &Scenario) -> Self {
        let mut cluster = Cluster::new(scenario);
        let follows = scenario.clients.follows;
        let client = follows.then(|| Client::attach(&mut cluster));
        Self {
            cluster,
            client,
            cancelled: None,
            lingering: BTreeMap::new(),
            ended_since: None,
            is_evidence_lost: false,
        }
    }

    fn tick(&mut self) {
        let before = self.lingering_now();
        self.cluster.tick();
        let is_recorded = track::recorded(&jobs(&self.cluster)).is_some();
        // A Job that ends deletes its active pods, including lingering ones.
        let after = pods(&self.cluster);
        let mut deleted = after.iter().filter(|pod| {
            let is_deleted = pod.metadata.deletion_timestamp.is_some();
            is_deleted && before.contains(&pod.metadata.uid)
        });
        self.is_evidence_lost |= !is_recorded && deleted.next().is_some();
        self.cancel();
        let clients = self.cluster.scenario.clients;
        match clients.lost {
            Some((lost, _)) if lost == self.cluster.now => self.client = None,
            Some((_, Some(back))) if back == self.cluster.now => {
                self.client = Some(Client::attach(&mut self.cluster));
            }
            _ => {}
        }
        if let Some(client) = &mut self.client {
            client.tick(&mut self.cluster);
        }
        if clients.cluster_stops {
            self.stop_leftovers();
        }
    }

    fn lingering_now(&self) -> BTreeSet<String> {
        let pods = pods(&self.cluster);
        let lingering = pods.iter().filter(|pod| pod.lingers());
        let alive = lingering.filter(|pod| pod.metadata.deletion_timestamp.is_none());
        alive.map(|pod| pod.metadata.uid.clone()).collect()
    }

    /// The user cancels the run.
    fn cancel(&mut self) {
        let cluster = &mut self.cluster;
        if cluster.scenario.cancelled != Some(cluster.now) {
            return;
        }
        if let Some(outcome) = verdict(cluster).outcome {
            let going_on = verdict(cluster).going_on.into_iter().collect();
            let outcome = record(cluster, &outcome);
            stop(cluster, &going_on, &outcome);
            return;
        }
        for job in 0..cluster.jobs.len() {
            if !cluster.is_over(job) {
                let key = "longshore.dev/cancelled".to_owned();
                let now = at(cluster.now).to_string();
                cluster.jobs[job].annotations.insert(key, now);
                cluster.jobs[job].is_suspended = true;
                self.cancelled = Some(cluster.now);
            }
        }
    }

    /// The embedded cluster ends lingering pods, and stops the remaining Jobs of runs.
    fn stop_leftovers(&mut self) {
        let lingering = self.lingering_now();
        let cluster = &mut self.cluster;
        self.lingering.retain(|uid, _| lingering.contains(uid));
        for uid in lingering {
            let since = *self.lingering.entry(uid.clone()).or_insert(cluster.now);
            if cluster.now - since >= LINGER {
                end_pod(cluster, &uid);
            }
        }
        let seen = verdict(cluster);
        let ended = seen
            .outcome
            .filter(|known| known.ending != Ending::Cancelled);
        let Some(outcome) = ended else { return };
        let since = *self.ended_since.get_or_insert(cluster.now);
        if cluster.now - since >= LEFTOVERS && !seen.going_on.is_empty() {
            let outcome = record(cluster, &outcome);
            stop(cluster, &seen.going_on.into_iter().collect(), &outcome);
        }
    }
}

/// The end of the run in the list of runs and in `why`.
fn read(cluster: &Cluster) -> [(&'static str, Option<i32>); 2] {
    let (jobs, pods) = (jobs(cluster), pods(cluster));
    let listed = runs::summaries(&jobs, &pods).remove(0);
    let run = Run {
        name: RunName::existing("run-x").unwrap(),
        namespace: "default".to_owned(),
        roles: roles(&cluster.scenario),
        schedule: None,
    };
    let evidence = RunEvidence {
        jobs,
        pods,
        ..RunEvidence::default()
    };
    let why = diagnose(&run, &evidence, at(cluster.now));
    let state = match why.state {
        super::State::Succeeded => "succeeded",
        super::State::Failed => "failed",
        super::State::Cancelled => "cancelled",
        super::State::NotStarted => "not started",
        _ => "active",
    };
    let listed_state = match listed.state.is_over() {
        true => listed.state.as_str(),
        false => "active",
    };
    [(listed_state, listed.exit_code), (state, why.exit_code)]
}

fn execute(scenario: &Scenario) -> Result<(), TestCaseError> {
    let mut execution = Execution::new(scenario);
    let mut first: Option<(&'static str, i32)> = None;
    for _ in 0..LENGTH {
        execution.tick();
        let cluster = &execution.cluster;
        let expected = oracle(cluster, execution.cancelled);
        let seen = verdict(cluster).outcome.as_ref().map(words);
        let now = cluster.now;
        // The end of a command whose pod another client deleted is known only until the pod is
        // gone.
        let is_deleted = expected
            .as_ref()
            .is_some_and(|right| right.contains(&("failed", 1)));
        let is_recorded = track::recorded(&jobs(cluster)).is_some();
        if execution.is_evidence_lost || is_deleted && cluster.overdue.is_none() && !is_recorded {
            return Ok(());
        }
        if let Some(seen) = seen {
            let right = expected.clone().unwrap_or_default();
            prop_assert!(right.contains(&seen), "at {now}: {seen:?}, not {right:?}");
            // Several failures at the same time may be seen in any order, until a client records
            // one.
            let known = first.filter(|_| right.len() == 1).unwrap_or(seen);
            prop_assert_eq!(known, seen, "the record changed at {}", now);
            first = Some(seen);
        } else {
            prop_assert_eq!(first, None, "the end was forgotten at {}", now);
        }
        if let Some(outcome) = execution
            .client
            .as_ref()
            .and_then(|client| client.outcome.as_ref())
        {
            let own = words(outcome);
            // If several ends happen at the same time, a client may see another one first, until
            // one is recorded.
            let is_at_once = expected
                .as_ref()
                .is_some_and(|right| right.len() > 1 && right.contains(&own));
            prop_assert!(
                Some(own) == seen || is_at_once && !is_recorded,
                "the client disagrees at {}: {:?}, not {:?}",
                now,
                own,
                seen
            );
        }
    }
    let expected = oracle(&execution.cluster, execution.cancelled);
    prop_assert_eq!(first.is_some(), expected.is_some(), "{:?}", expected);
    let known = first.map_or(("active", None), |(ending, code)| (ending, Some(code)));
    for read in read(&execution.cluster) {
        prop_assert_eq!(read, known);
    }
    // A client that attaches now sees only the last state.
    let mut late = Client::attach(&mut execution.cluster);
    for _ in 0..5 {
        execution.cluster.tick();
        late.tick(&mut execution.cluster);
    }
    if let Some(known) = first {
        prop_assert_eq!(late.outcome.as_ref().map(words), Some(known));
    }
    Ok(())
}

proptest! {
    #[test]
    fn all_readers_agree_about_the_end_of_a_run(scenario in scenarios()) {
        execute(&scenario)?;
    }
}
