//! Queries of a follower in addition to its watches.

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

/// The first interval between queries for why a task waits. It doubles each time.
pub(super) const FIRST_POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The longest interval between two such queries.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(60);
/// The timeout of such a query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout for listing all pods.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a list of all pods stays valid.
const LIST_VALIDITY: Duration = Duration::from_secs(3);

/// How long the cluster may be unreachable before this is reported.
const AWAY_REPORT_DELAY: Duration = Duration::from_secs(5);

impl Driver {
    /// Reports an outage of the cluster, once per outage.
    pub(super) async fn report_away(&mut self) -> Result<(), ReceiverDropped> {
        let is_away = self.liveness.away() > AWAY_REPORT_DELAY;
        if is_away && !self.away_reported {
            let remedy = "the run continues, and is followed again when the cluster answers";
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

    /// Lists all pods and Jobs again. If the cluster does not answer, the next tick retries.
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
        // Only now: before this point, the state mixes old and new objects.
        (self.relisted, self.recheck) = (Some(Instant::now()), false);
        self.see(Seen::Tick).await
    }

    /// Starts a query for why a task waits.
    pub(super) fn ask_why(&mut self) {
        let now = Instant::now();
        let is_due = self
            .asked
            .is_none_or(|asked| now.duration_since(asked) >= self.pause);
        if is_due && self.question.is_empty() && self.track.needs_cause(Timestamp::now()) {
            // There may be many nodes, and they rarely change: list them once.
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

    /// Adds facts from the cluster to the outcome. Called before the rest of the run is
    /// stopped, which deletes pods.
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
