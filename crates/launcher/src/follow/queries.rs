//! What a follower asks the cluster beside what it watches.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use longshore_client::Change;
use tokio::time::{Instant, timeout};

use super::{Driver, Event, Outcome, ReceiverDropped};
use crate::{
    around::{self, Look},
    explain::{Cause, Explanation},
    track::Seen,
};

/// How soon the cluster is asked again why something waits; then each time
/// after twice as long.
pub(super) const FIRST_POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The longest time between two such questions.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(60);
/// How long such a question may take.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// How long all pods may take to be listed.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a list of all pods counts as current.
const LIST_VALIDITY: Duration = Duration::from_secs(3);

/// How long the cluster does not answer before that is reported.
const AWAY_REPORT_DELAY: Duration = Duration::from_secs(5);

impl Driver {
    /// Reports, once each time, that the cluster does not answer.
    pub(super) async fn report_away(&mut self) -> Result<(), ReceiverDropped> {
        let is_away = self.liveness.away() > AWAY_REPORT_DELAY;
        if is_away && !self.away_reported {
            let remedy = "the run goes on, and is followed again when it does";
            let what = Explanation::new(Cause::ClusterAway, "the cluster does not answer", remedy);
            self.send(Event::Waiting(what)).await?;
        }
        self.away_reported = is_away;
        Ok(())
    }

    pub(super) fn is_relisted(&self) -> bool {
        self.relisted
            .is_some_and(|relisted| relisted.elapsed() < LIST_VALIDITY)
    }

    /// Lists all pods and Jobs once more, if the cluster answers; otherwise the
    /// next tick tries it.
    pub(super) async fn relist(&mut self) -> Result<(), ReceiverDropped> {
        let (Ok(pods), Ok(jobs)) = (self.run.pods(&self.cluster), self.run.jobs(&self.cluster))
        else {
            return Ok(());
        };
        let both = async { futures::try_join!(pods.list(), jobs.list()) };
        let (pods, jobs) = match timeout(LIST_TIMEOUT, both).await {
            Ok(Ok(both)) => both,
            Ok(Err(error)) => {
                tracing::debug!(%error, "whether tasks have begun cannot be seen");
                return Ok(());
            }
            Err(_) => return Ok(()),
        };
        let there: BTreeSet<&str> = pods.items.iter().map(|pod| pod.uid()).collect();
        for uid in self.track.pods_but(&there) {
            self.see(Seen::PodGone(uid)).await?;
        }
        for job in jobs.items {
            self.see_job(&Change::Upsert(job)).await?;
        }
        for pod in pods.items {
            self.see_pod(&Change::Upsert(pod)).await?;
        }
        // Not before: halfway through, old and new are mixed.
        (self.relisted, self.recheck) = (Some(Instant::now()), false);
        self.see(Seen::Tick).await
    }

    /// Asks why something waits that should have begun.
    pub(super) fn ask_why(&mut self) {
        let now = Instant::now();
        let is_due = self
            .asked
            .is_none_or(|asked| now.duration_since(asked) >= self.pause);
        if is_due && self.question.is_empty() && self.track.needs_cause(Timestamp::now()) {
            // Nodes are many, and change little: they are looked at once.
            let is_first = self.asked.is_none();
            self.asked = Some(now);
            if !is_first {
                self.pause = (self.pause * 2).min(MAX_POLL_INTERVAL);
            }
            let (cluster, run) = (self.cluster.clone(), self.run.clone());
            let look = Look {
                warnings: true,
                nodes: is_first,
                quotas: false,
            };
            self.question
                .spawn(async move { around::answered(&cluster, &run, look, QUERY_TIMEOUT).await });
        }
    }

    /// The outcome with what the cluster knows beside pods and Jobs. Asked
    /// before the rest of the run is stopped, which takes pods away.
    pub(super) async fn with_cluster_facts(&mut self, outcome: Outcome) -> Outcome {
        let kind = outcome.explanation.as_ref().map(|known| known.kind);
        let Some(kind) = kind.filter(|kind| !kind.is_plain()) else {
            return outcome;
        };
        let look = Look {
            warnings: false,
            nodes: kind.family() == Cause::Unschedulable || kind == Cause::Signal,
            quotas: false,
        };
        let Some(around) = around::answered(&self.cluster, &self.run, look, QUERY_TIMEOUT).await
        else {
            return outcome;
        };
        let decided = self.track.redecide(around, Timestamp::now());
        decided
            .filter(|decided| decided.ending == outcome.ending)
            .unwrap_or(outcome)
    }
}
