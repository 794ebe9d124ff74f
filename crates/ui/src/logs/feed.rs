//! The lines of one followed run.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use longshore_client::Cluster;
use longshore_launcher::{Event, Follow, FollowOptions, Run};
use tokio::{sync::watch, task::AbortHandle};

use super::{
    chunk::Chunk,
    ring::{Next, Ring},
};

/// How long tasks may wait before they start: the page does not give up a run.
const START_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);
/// The maximum number of lines that are encoded together.
const CHUNK_LINES: usize = 1000;

/// The state of a followed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Lines may follow.
    Open,
    /// The run has ended, and all its lines were read.
    Ended,
    /// The logs cannot be read any more, for this reason.
    Failed(String),
}

/// The lines of a run. Dropping the last reference stops following it.
#[derive(Debug)]
pub(crate) struct LogFeed {
    /// Identifies the numbering of the lines.
    pub(super) epoch: u64,
    ring: Mutex<Ring>,
    has_failed: AtomicBool,
    /// Increases with each change of the ring.
    changes: watch::Receiver<State>,
    worker: AbortHandle,
}

impl Drop for LogFeed {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

impl LogFeed {
    /// Follows a run.
    pub(super) fn start(cluster: Cluster, run: Run) -> Arc<Self> {
        let (sender, changes) = watch::channel(State::Open);
        Arc::new_cyclic(|feed: &std::sync::Weak<Self>| {
            let feed = feed.clone();
            let worker = tokio::spawn(async move {
                let end = follow(&cluster, &run, &feed, &sender).await;
                if let (State::Failed(_), Some(feed)) = (&end, feed.upgrade()) {
                    feed.has_failed.store(true, Ordering::Relaxed);
                }
                sender.send_replace(end);
            });
            Self {
                epoch: rand::random::<u64>() >> 12,
                ring: Mutex::default(),
                has_failed: AtomicBool::new(false),
                changes,
                worker: worker.abort_handle(),
            }
        })
    }

    /// Whether the logs cannot be read any more.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// The changes of the ring.
    pub(super) fn changes(&self) -> watch::Receiver<State> {
        self.changes.clone()
    }

    /// The lines at a position.
    pub(super) fn read(&self, position: u64) -> Next {
        self.lock().read(position)
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the lines until the run ends or the feed is dropped.
async fn follow(
    cluster: &Cluster,
    run: &Run,
    feed: &std::sync::Weak<LogFeed>,
    sender: &watch::Sender<State>,
) -> State {
    // Reading logs must not stop the run.
    let options = FollowOptions {
        stop: false,
        start_timeout: START_TIMEOUT,
        ..FollowOptions::default()
    };
    let mut follow = match Follow::start(cluster, run, options).await {
        Ok(follow) => follow,
        Err(error) => return State::Failed(error.to_string()),
    };
    while let Some(first) = follow.next().await {
        let mut chunk = Chunk::default();
        let mut next = Some(first);
        let mut end = None;
        while let Some(event) = next {
            match event {
                Ok(Event::Log(line)) => chunk.add(&line),
                Ok(Event::Gap(gap)) => chunk.add_gap(&gap),
                Ok(Event::Finished(_)) => end = Some(State::Ended),
                Ok(_) => {}
                Err(error) => end = Some(State::Failed(error.to_string())),
            }
            next = match end.is_none() && chunk.len() < CHUNK_LINES {
                true => follow.try_next(),
                false => None,
            };
        }
        let Some(feed) = feed.upgrade() else {
            return State::Ended;
        };
        if chunk.len() > 0 {
            feed.lock().add(&chunk);
            sender.send_replace(State::Open);
        }
        if let Some(end) = end {
            return end;
        }
    }
    State::Ended
}
