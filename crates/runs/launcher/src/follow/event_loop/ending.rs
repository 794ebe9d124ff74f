//! The end of a follower: the decided outcome, lingering pods, and the end of the logs.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use longshore_diagnosis::{
    evidence::{JobEvidence, RunPod as _},
    outcome::{Ending, Outcome},
};
use longshore_model::facts::PodFacts;
use tokio::time::Instant;

use super::{EventLoop, ReceiverDropped};
use crate::{
    follow::{
        Event, GapCause, diagnosis,
        drain::{Drain, Drained, Reading},
        stop::{stop_jobs, stop_rest},
    },
    runs,
};

/// The decided outcome, while the logs are read to their end.
pub(super) struct Decided {
    decided: runs::Decided,
    /// The pods whose logs belong to the outcome.
    evidence: BTreeSet<String>,
    drain: Drain,
}

fn uids<'a>(pods: &[&'a PodFacts]) -> impl Iterator<Item = &'a str> {
    pods.iter().map(|pod| pod.metadata.uid.as_str())
}

impl EventLoop {
    /// Ends pods whose command ended some time ago while another container is still running.
    pub(super) async fn end_lingering(&mut self, now: Instant) {
        let pods = self.track.lingering();
        self.lingering.see(uids(&pods), now);
        let due = self.lingering.take_due(runs::LINGER, now);
        let is_due = |pod: &&PodFacts| due.contains(&pod.metadata.uid);
        for pod in pods.into_iter().filter(is_due) {
            if let Err(error) = runs::end_pod(&self.cluster, pod).await {
                let name = &pod.metadata.name;
                tracing::debug!(%error, name, "cannot end a pod whose command has ended");
                self.lingering.is_refused = true;
                if self.decided.is_none() && pod.has_failed() {
                    // The pod's Job counts a deleted pod as failed, too, and restarts the task.
                    runs::delete_pod(&self.cluster, pod).await;
                }
            }
        }
        if self.lingering.is_refused
            && let Some(decided) = &self.decided
        {
            self.stop_lingering(&decided.decided.outcome).await;
        }
    }

    /// Stops the Jobs of lingering pods, if the client has no permission to end the pods
    /// themselves.
    async fn stop_lingering(&self, outcome: &Outcome) {
        let pods = self.track.lingering().into_iter();
        let jobs: BTreeMap<&str, &JobEvidence> = pods
            .filter_map(|pod| self.track.job_of(pod))
            .filter(|job| !job.is_over() && !job.spec.suspend)
            .map(|job| (job.metadata.name.as_str(), job))
            .collect();
        let jobs: Vec<&JobEvidence> = jobs.into_values().collect();
        let decided = runs::Decided {
            outcome: outcome.clone(),
            by_task: false,
        };
        stop_jobs(&self.cluster, &self.run, &jobs, &decided, Timestamp::now()).await;
    }

    pub(super) async fn decide(&mut self, outcome: Outcome, evidence: BTreeSet<String>) {
        // Must precede the stop of the rest of the run, which deletes pods.
        let outcome = self.with_cluster_evidence(outcome).await;
        let is_bad = matches!(outcome.ending, Ending::Failed | Ending::NotStarted);
        let mut decided = runs::Decided {
            by_task: is_bad && !evidence.is_empty(),
            outcome,
        };
        if self.stops {
            (decided.outcome.began, decided.outcome.finished) = self.track.span();
            let pods = self.track.lingering();
            self.lingering.see(uids(&pods), Instant::now());
            let (active, lingers) = (self.track.going_on(), !pods.is_empty());
            // The pods and logs of commands that have ended are kept when their Job is stopped.
            for pod in pods {
                let job = self.track.job_of(pod).map(|job| &job.metadata.name);
                if active
                    .iter()
                    .any(|active| Some(&active.metadata.name) == job)
                {
                    let ended = runs::end_pod(&self.cluster, pod).await;
                    self.lingering.is_refused |= ended.is_err();
                }
            }
            let (cluster, run) = (&self.cluster, &self.run);
            let now = Timestamp::now();
            let recorded = stop_rest(cluster, run, active, lingers, &decided, now).await;
            if let Some(recorded) = recorded {
                decided.outcome = recorded;
            }
            if self.lingering.is_refused {
                self.stop_lingering(&decided.outcome).await;
            }
        }
        self.decided = Some(Decided {
            decided,
            evidence,
            drain: Drain::new(self.liveness.progress(), Instant::now()),
        });
    }

    /// Decides the outcome again with evidence from the cluster.
    async fn with_cluster_evidence(&mut self, outcome: Outcome) -> Outcome {
        let Some(kind) = outcome.explanation.as_ref().map(|known| known.kind) else {
            return outcome;
        };
        let Some(evidence) = diagnosis::cluster_evidence(&self.cluster, &self.run, kind).await
        else {
            return outcome;
        };
        let decided = self.track.redecide(evidence, Timestamp::now());
        decided
            .filter(|decided| decided.ending == outcome.ending)
            .unwrap_or(outcome)
    }

    /// Reports the end once the outcome is decided and the logs have been read. Returns true if it
    /// was reported.
    pub(super) async fn finish_if_done(&mut self, now: Instant) -> Result<bool, ReceiverDropped> {
        let Some(decided) = &mut self.decided else {
            return Ok(false);
        };
        let reading = Reading {
            progress: self.liveness.progress(),
            is_blocked: self.events.capacity() == 0,
            evidence: self.logs.is_any_open_of(&decided.evidence)
                || self.logs.is_any_open_of_ended(),
            any: self.logs.is_any_open(),
        };
        let drained = decided.drain.check(reading, now);
        let (outcome, evidence) = (decided.decided.outcome.clone(), decided.evidence.clone());
        let Drained::Done { is_quiet } = drained else {
            return Ok(false);
        };
        if self.stops && self.lingering.is_any() {
            return Ok(false);
        }
        // A silent reader of a pod that continues has delivered everything.
        for (uid, source, attempt) in self.logs.give_up() {
            if !is_quiet || evidence.contains(&uid) || self.logs.has_ended(&uid) {
                let cause = GapCause::TimedOut;
                self.report_gap(source, attempt, cause).await?;
            }
        }
        let mut outcome = self.with_last_line(outcome, &evidence);
        outcome.gaps = self.liveness.gaps();
        (outcome.began, outcome.finished) = self.track.span();
        self.send(Event::Finished(outcome)).await?;
        Ok(true)
    }

    /// Explains a failure by the last line of the log, which may be more specific than the
    /// status.
    fn with_last_line(&self, outcome: Outcome, evidence: &BTreeSet<String>) -> Outcome {
        if !matches!(outcome.ending, Ending::Failed | Ending::NotStarted) {
            return outcome;
        }
        let name = outcome
            .explanation
            .as_ref()
            .and_then(|why| why.pod.as_ref());
        let mut pods = evidence.iter().filter_map(|uid| {
            let pod = self.track.pod(uid)?;
            (Some(&pod.metadata.name) == name && pod.has_failed()).then_some((uid, pod))
        });
        let Some((uid, pod)) = pods.next() else {
            return outcome;
        };
        let others = outcome.explanation.as_ref().map_or(0, |known| known.others);
        let explained = self
            .track
            .failed_outcome(pod, others, self.logs.last_line(uid));
        // The end of the run is decided, and perhaps recorded, so it must not change.
        Outcome {
            ending: outcome.ending,
            exit_code: outcome.exit_code,
            ..explained
        }
    }
}
