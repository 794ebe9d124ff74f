//! What a follower asks the cluster beside what it watches.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use longshore_client::Change;
use tokio::time::{Instant, timeout};

use super::{Driver, Event, Outcome, Unheard};
use crate::{
    around::{self, Look},
    explain::{Cause, Explanation},
    track::Seen,
};

/// How soon the cluster is asked again why something waits; then each time
/// after twice as long, but not longer than the second.
pub(super) const WONDER: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(60)];
/// How long such a question may take.
const LOOK: Duration = Duration::from_secs(2);
/// How long all pods may take to be listed.
const LIST: Duration = Duration::from_secs(20);
/// How long what was looked at again is believed.
const FRESH: Duration = Duration::from_secs(3);

/// How long nobody answers before it is told.
const TELL: Duration = Duration::from_secs(5);

impl Driver {
    /// Tells, once each time, that the cluster does not answer.
    pub(super) async fn tell_away(&mut self) -> Result<(), Unheard> {
        let is_away = self.liveness.away() > TELL;
        if is_away && !self.told_away {
            let remedy = "the run goes on, and is followed again when it does";
            let what = Explanation::new(Cause::ClusterAway, "the cluster does not answer", remedy);
            self.tell(Event::Waiting(what)).await?;
        }
        self.told_away = is_away;
        Ok(())
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.fresh.is_some_and(|fresh| fresh.elapsed() < FRESH)
    }

    /// Sees all pods and Jobs as they are, if the cluster tells; otherwise the
    /// next tick tries it.
    pub(super) async fn look_again(&mut self) -> Result<(), Unheard> {
        let (Ok(pods), Ok(jobs)) = (self.run.pods(&self.cluster), self.run.jobs(&self.cluster))
        else {
            return Ok(());
        };
        let both = async { futures::try_join!(pods.list(), jobs.list()) };
        let (pods, jobs) = match timeout(LIST, both).await {
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
        (self.fresh, self.doubts) = (Some(Instant::now()), false);
        self.see(Seen::Tick).await
    }

    /// Asks why something waits that should have begun.
    pub(super) fn wonder(&mut self) {
        let now = Instant::now();
        let is_due = self
            .asked
            .is_none_or(|asked| now.duration_since(asked) >= self.pause);
        if is_due && self.question.is_empty() && self.track.wonders(Timestamp::now()) {
            // Nodes are many, and change little: they are looked at once.
            let is_first = self.asked.is_none();
            self.asked = Some(now);
            if !is_first {
                self.pause = (self.pause * 2).min(WONDER[1]);
            }
            let (cluster, run) = (self.cluster.clone(), self.run.clone());
            let look = Look {
                warnings: true,
                nodes: is_first,
                quotas: false,
            };
            self.question
                .spawn(async move { around::answered(&cluster, &run, look, LOOK).await });
        }
    }

    /// The outcome with what the cluster knows beside pods and Jobs. Asked
    /// before the rest of the run is stopped, which takes pods away.
    pub(super) async fn retold(&mut self, outcome: Outcome) -> Outcome {
        let kind = outcome.explanation.as_ref().map(|known| known.kind);
        let Some(kind) = kind.filter(|kind| !kind.is_plain()) else {
            return outcome;
        };
        let look = Look {
            warnings: false,
            nodes: kind.family() == Cause::Unschedulable || kind == Cause::Signal,
            quotas: false,
        };
        let Some(around) = around::answered(&self.cluster, &self.run, look, LOOK).await else {
            return outcome;
        };
        let told = self.track.retell(around, Timestamp::now());
        told.filter(|told| told.ending == outcome.ending)
            .unwrap_or(outcome)
    }
}
