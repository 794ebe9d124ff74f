//! Queries the cluster for the causes of waiting or failed tasks: events and nodes, which are not
//! watched.

use std::time::Duration;

use longshore_client::Cluster;
use longshore_diagnosis::explain::{Cause, ClusterEvidence};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    cluster_evidence::{self, Query},
    run::Run,
};

/// The first interval between queries. It doubles each time.
const FIRST_POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The longest interval between two queries.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(60);
/// The timeout of a query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// The schedule of queries.
#[derive(Debug)]
struct Schedule {
    last: Option<Instant>,
    interval: Duration,
}

impl Schedule {
    fn is_due(&self, now: Instant) -> bool {
        self.last
            .is_none_or(|last| now.duration_since(last) >= self.interval)
    }

    /// Records a query. Returns true if it is the first.
    fn record(&mut self, now: Instant) -> bool {
        let is_first = self.last.is_none();
        self.last = Some(now);
        if !is_first {
            self.interval = (self.interval * 2).min(MAX_POLL_INTERVAL);
        }
        is_first
    }
}

/// Queries repeatedly while a task waits, one query at a time.
#[derive(Debug)]
pub(super) struct Diagnosis {
    pending: JoinSet<Option<ClusterEvidence>>,
    schedule: Schedule,
}

impl Diagnosis {
    pub(super) fn new() -> Self {
        Self {
            pending: JoinSet::new(),
            schedule: Schedule {
                last: None,
                interval: FIRST_POLL_INTERVAL,
            },
        }
    }

    /// Returns true if a query may be started.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.pending.is_empty() && self.schedule.is_due(now)
    }

    /// Starts a query.
    pub(super) fn start(&mut self, cluster: &Cluster, run: &Run, now: Instant) {
        let query = Query {
            warnings: true,
            // List the nodes only once, because there may be many, and they rarely change.
            nodes: self.schedule.record(now),
            quotas: false,
        };
        let (cluster, run) = (cluster.clone(), run.clone());
        self.pending.spawn(async move {
            cluster_evidence::answered(&cluster, &run, query, QUERY_TIMEOUT).await
        });
    }

    /// The evidence from the cluster, once a query was answered. Cancel-safe.
    pub(super) async fn answer(&mut self) -> ClusterEvidence {
        loop {
            match self.pending.join_next().await {
                Some(Ok(Some(evidence))) => return evidence,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }
}

/// Queries the evidence that makes the explanation of a decided outcome more specific. `None` if
/// the cause needs no evidence, or if the cluster does not answer.
pub(super) async fn cluster_evidence(
    cluster: &Cluster,
    run: &Run,
    kind: Cause,
) -> Option<ClusterEvidence> {
    if kind.is_plain() {
        return None;
    }
    let query = Query {
        warnings: false,
        nodes: kind.family() == Cause::Unschedulable || kind == Cause::Signal,
        quotas: false,
    };
    cluster_evidence::answered(cluster, run, query, QUERY_TIMEOUT).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_doubles_up_to_a_minute() {
        let mut now = Instant::now();
        let mut schedule = Diagnosis::new().schedule;
        assert!(schedule.is_due(now));
        assert!(schedule.record(now));
        let mut intervals = Vec::new();
        for _ in 0..6 {
            let last = now;
            while !schedule.is_due(now) {
                now += Duration::from_secs(1);
            }
            intervals.push(now.duration_since(last).as_secs());
            assert!(!schedule.record(now));
        }
        assert_eq!(intervals, [5, 10, 20, 40, 60, 60]);
    }
}
