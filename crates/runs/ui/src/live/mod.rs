//! Watches the cluster's runs once for all tabs, and sends each tab the parts of its page that
//! have changed.
//!
//! A tab always gets the newest state. A slow tab skips states, and holds no memory.

mod events;
mod repeated;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use longshore_client::{Cluster, LabelSelector};
use longshore_launcher::{
    RunSummary,
    runs::{RunPods, WatchedRuns},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

pub(crate) use events::{Parts, part_events};
pub(crate) use repeated::repeated_events;

use crate::{
    pages::Reachability,
    route::RunKey,
    view::{RoleView, TaskAttempt, attempt, tasks},
};

/// Changes within this time are sent together.
const SETTLE: Duration = Duration::from_millis(100);
/// The part of the time that summaries may take: with thousands of pods, changes are sent less
/// often.
const REST_FACTOR: u32 = 4;
/// The pause before the cluster is contacted again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The interval of the checks whether the cluster responds.
const CHECK_INTERVAL: Duration = Duration::from_secs(3);
/// The timeout of a check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of all runs at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// The runs, newest first.
    pub(crate) runs: Arc<Vec<RunSummary>>,
    pods: Option<RunPods>,
    /// The state of the connection to the cluster.
    pub(crate) reachability: Reachability,
    /// True if the runs were listed at least once.
    pub(crate) is_loaded: bool,
}

impl Snapshot {
    fn empty() -> Self {
        Self {
            runs: Arc::default(),
            pods: None,
            reachability: Reachability::Connecting,
            is_loaded: false,
        }
    }

    /// A run.
    pub(crate) fn run(&self, key: &RunKey) -> Option<&RunSummary> {
        self.runs
            .iter()
            .find(|run| run.run.name.as_str() == key.name && run.run.namespace == key.namespace)
    }

    /// The runs that a schedule has created.
    pub(crate) fn runs_of(&self, schedule: &RunSummary) -> Vec<RunSummary> {
        let is_own = |run: &&RunSummary| {
            run.run.schedule.as_ref() == Some(&schedule.run.name)
                && run.run.namespace == schedule.run.namespace
        };
        self.runs.iter().filter(is_own).cloned().collect()
    }

    /// The tasks of a run.
    pub(crate) fn tasks(&self, run: &RunSummary) -> Vec<RoleView> {
        let pods = self.pods.as_ref().map(|pods| pods.of(&run.run));
        let pods = pods.unwrap_or_default();
        let attempts = pods.iter().filter_map(|pod| attempt(&pod.raw().ok()?));
        let attempts: Vec<TaskAttempt> = attempts.collect();
        tasks(&run.run.roles, run.state, attempts)
    }
}

/// The runs as they change.
#[derive(Debug, Clone)]
pub(crate) struct Feed(watch::Receiver<Snapshot>);

impl Feed {
    /// The newest state.
    pub(crate) fn now(&self) -> Snapshot {
        self.0.borrow().clone()
    }

    /// Waits until the runs were listed, but not longer than this.
    pub(crate) async fn loaded(&mut self, limit: Duration) -> Snapshot {
        let loaded = self.0.wait_for(|snapshot| snapshot.is_loaded);
        let _ = timeout(limit, loaded).await;
        self.now()
    }

    /// Waits until a run was listed, but not longer than this.
    pub(crate) async fn listed(&mut self, key: &RunKey, limit: Duration) {
        let listed = self.0.wait_for(|snapshot| snapshot.run(key).is_some());
        let _ = timeout(limit, listed).await;
    }

    /// Waits for a change. Returns false if there will be none.
    pub(crate) async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// Starts to watch the runs. The future runs until the cluster is closed or the receivers are
/// dropped.
pub(crate) fn start(
    cluster: Cluster,
    namespace: Option<String>,
) -> (Feed, impl Future<Output = ()> + Send) {
    let (sender, receiver) = watch::channel(Snapshot::empty());
    (Feed(receiver), follow(cluster, namespace, sender))
}

async fn follow(cluster: Cluster, namespace: Option<String>, sender: watch::Sender<Snapshot>) {
    let selector = LabelSelector::everything();
    while !cluster.is_closed() && !sender.is_closed() {
        // The check fails sooner: the requests of a watch are repeated.
        let problem = check(&cluster, namespace.as_deref()).await;
        let is_reachable = problem.is_none();
        set_reachability(&sender, problem);
        if is_reachable {
            match WatchedRuns::start(&cluster, namespace.as_deref(), &selector).await {
                Ok(watched) => publish_all(&cluster, namespace.as_deref(), watched, &sender).await,
                Err(error) => set_reachability(&sender, Some(error.to_string())),
            }
        }
        sleep(RETRY_INTERVAL).await;
    }
}

/// Publishes the runs until their watch ends.
async fn publish_all(
    cluster: &Cluster,
    namespace: Option<&str>,
    mut watched: WatchedRuns,
    sender: &watch::Sender<Snapshot>,
) {
    let mut checked = Instant::now();
    loop {
        let began = Instant::now();
        match watched.now() {
            Ok(runs) => {
                let pods = watched.pods();
                sender.send_modify(|snapshot| {
                    snapshot.runs = Arc::new(runs);
                    snapshot.pods = Some(pods);
                    snapshot.is_loaded = true;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the runs cannot be read");
            }
        }
        let busy = began.elapsed().saturating_mul(REST_FACTOR);
        loop {
            tokio::select! {
                is_open = watched.changed() => match is_open {
                    true => break,
                    false => return,
                },
                () = sleep(CHECK_INTERVAL.saturating_sub(checked.elapsed())) => {
                    let error = check(cluster, namespace).await;
                    set_reachability(sender, error);
                    checked = Instant::now();
                }
                () = sender.closed() => return,
            }
        }
        sleep(SETTLE.max(busy)).await;
    }
}

/// Checks that the cluster responds, because watches reconnect without a report. Returns the
/// problem if it does not.
async fn check(cluster: &Cluster, namespace: Option<&str>) -> Option<String> {
    let namespace = namespace.unwrap_or(cluster.default_namespace());
    let mut timing = longshore_client::Timing::default();
    timing.retries = 0;
    let jobs = cluster.clone().with_timing(timing).jobs();
    let jobs = jobs.in_namespace(namespace).ok()?;
    // The name cannot exist, so the response is short.
    match timeout(CHECK_TIMEOUT, jobs.find("longshore-ui--check")).await {
        Err(_) => Some(format!("no response within {} s", CHECK_TIMEOUT.as_secs())),
        Ok(Err(error)) if is_outage(&error) => Some(error.to_string()),
        Ok(_) => None,
    }
}

/// Returns true if an error means that the cluster is unavailable, and not that it refuses the
/// request.
fn is_outage(error: &longshore_client::Error) -> bool {
    error.is_unreachable() || error.is_timeout() || error.code().is_some_and(|code| code >= 500)
}

fn set_reachability(sender: &watch::Sender<Snapshot>, error: Option<String>) {
    sender.send_if_modified(|snapshot| {
        let new = match (error, &snapshot.reachability) {
            (None, Reachability::Reachable) => return false,
            (None, _) => Reachability::Reachable,
            (Some(error), Reachability::Away(known, _)) if *known == error => return false,
            (Some(error), Reachability::Away(_, since)) => Reachability::Away(error, *since),
            (Some(error), _) => Reachability::Away(error, Timestamp::now()),
        };
        snapshot.reachability = new;
        true
    });
}
