//! Follows a run to its end: progress, the merged logs of all tasks, and the
//! outcome.

mod deleted;
mod diagnosis;
mod drain;
mod event;
mod event_loop;
mod lingering;
mod liveness;
mod logs;
mod outage;
mod reader;
mod recheck;
mod stop;
mod turns;
mod watched;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use longshore_client::Cluster;
pub use longshore_diagnosis::{
    outcome::{Ending, Outcome, Retry},
    progress::{Progress, RoleProgress},
};
use tokio::{sync::mpsc, task::JoinHandle};

use crate::run::Run;
pub use event::{Event, GapCause, LogGap, LogLine, Unfinished};
use liveness::Liveness;
pub use watched::Watched;

/// The reason why a run can no longer be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The cluster returned an error or did not answer.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// The connection was closed while the run was active.
    #[error(
        "the connection to the cluster was closed; the run continues, `longshore logs --follow` follows it again"
    )]
    Closed,
}

/// Options for following a run.
#[derive(Debug, Clone)]
pub struct FollowOptions {
    /// Read the tasks' logs.
    pub logs: bool,
    /// The number of existing lines of each task's log to begin with. `None` for all.
    pub tail: Option<u64>,
    /// Begin with the lines that the nodes received at this time or later. `None` for all.
    /// Kubernetes compares whole seconds, so earlier lines of that second may be included.
    pub since: Option<Timestamp>,
    /// Stop the remaining tasks when the outcome is decided: the other tasks when one failed, and
    /// the service roles when all others have ended. Also ends pods whose command has ended while
    /// another container does not end.
    pub stop: bool,
    /// The maximum time until a task starts.
    pub start_timeout: Duration,
    /// Keep unfinished lines for [`Follow::unfinished`].
    pub unfinished: bool,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self {
            logs: true,
            tail: None,
            since: None,
            stop: true,
            start_timeout: Duration::from_secs(600),
            unfinished: false,
        }
    }
}

/// A followed run. Dropping it stops following, but not the run.
#[derive(Debug)]
pub struct Follow {
    events: mpsc::Receiver<Result<Event, Error>>,
    liveness: Arc<Liveness>,
    worker: JoinHandle<()>,
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

/// The capacity of the event queue. Log readers wait when it is full.
const QUEUE: usize = 1024;

impl Follow {
    /// Starts following an existing run. Waits up to a minute for a server that cannot be
    /// reached.
    ///
    /// # Errors
    /// The run's pods or Jobs cannot be listed.
    pub async fn start(
        cluster: &Cluster,
        run: &Run,
        options: FollowOptions,
    ) -> Result<Self, Error> {
        Watched::open(cluster, run).await?.follow(&options)
    }

    /// The next event, or `None` after the last. Cancel-safe: no event is lost.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        self.events.recv().await
    }

    /// The next event, if one is available.
    pub fn try_next(&mut self) -> Option<Result<Event, Error>> {
        self.events.try_recv().ok()
    }

    /// The current state of unfinished lines, such as progress bars, if
    /// [`FollowOptions::unfinished`] is set. Container runtimes that deliver only whole lines
    /// have none.
    #[must_use]
    pub fn unfinished(&self) -> Vec<Unfinished> {
        self.liveness.unfinished()
    }
}
