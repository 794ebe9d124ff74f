//! The lines of one followed run.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use longshore_client::Cluster;
use longshore_launcher::{Event, Follow, FollowOptions, Run};
use tokio::{
    sync::watch,
    task::AbortHandle,
    time::{Instant, timeout},
};

use super::{
    chunk::Chunk,
    history::History,
    ring::{Next, Ring},
};

/// The maximum time to wait for tasks to start. It is a year, so that the page never gives up a
/// run.
const START_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);
/// The maximum number of lines that are encoded together.
const CHUNK_LINES: usize = 1000;

/// The maximum time to wait for lines that exist already, before lines are shown.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(3);
/// The existing lines are complete if no further line has arrived for this time.
const HISTORY_QUIET: Duration = Duration::from_millis(500);

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
        Arc::new_cyclic(|feed: &Weak<Self>| {
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

    /// A feed for tests, which add the lines themselves.
    #[cfg(test)]
    pub(super) fn of_test(limits: super::ring::Limits) -> (Arc<Self>, watch::Sender<State>) {
        let (sender, changes) = watch::channel(State::Open);
        let feed = Self {
            epoch: 7,
            ring: Mutex::new(Ring::with_limits(limits)),
            has_failed: AtomicBool::new(false),
            changes,
            worker: tokio::spawn(async {}).abort_handle(),
        };
        (Arc::new(feed), sender)
    }

    /// Adds lines.
    #[cfg(test)]
    pub(super) fn add(&self, chunk: &Chunk) {
        self.lock().add(chunk);
    }

    /// Returns true if the logs cannot be read any more.
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
    feed: &Weak<LogFeed>,
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
    let (history, mut end) = read_history(&mut follow).await;
    for chunk in history.chunks(CHUNK_LINES) {
        if !publish(feed, &chunk, sender) {
            return State::Ended;
        }
    }
    while end.is_none() {
        let mut chunk = Chunk::default();
        let mut next = follow.next().await;
        if next.is_none() {
            end = Some(State::Ended);
        }
        while let Some(event) = next {
            match event {
                Ok(Event::Log(line)) => chunk.add(&line),
                Ok(Event::Gap(gap)) => chunk.add_gap(&gap),
                event => end = ending(event),
            }
            next = match end.is_none() && chunk.len() < CHUNK_LINES {
                true => follow.try_next(),
                false => None,
            };
        }
        if !publish(feed, &chunk, sender) {
            return State::Ended;
        }
    }
    end.unwrap_or(State::Ended)
}

/// The state after an event that has no lines, if it is the last.
fn ending(event: Result<Event, longshore_launcher::follow::Error>) -> Option<State> {
    match event {
        Ok(Event::Finished(_)) => Some(State::Ended),
        Ok(_) => None,
        Err(error) => Some(State::Failed(error.to_string())),
    }
}

/// Reads the lines that exist already. Also returns the state, if there will be no more lines.
async fn read_history(follow: &mut Follow) -> (History, Option<State>) {
    let (began, started) = (Instant::now(), Timestamp::now());
    let mut history = History::default();
    let mut is_current = false;
    while !history.is_full() {
        let elapsed = began.elapsed();
        // The logs have been read to lines that are written now.
        if is_current && elapsed >= HISTORY_QUIET {
            break;
        }
        let left = HISTORY_TIMEOUT.saturating_sub(elapsed);
        let wait = match history.is_empty() {
            true => left,
            false => left.min(HISTORY_QUIET),
        };
        match timeout(wait, follow.next()).await {
            Err(_) => break,
            Ok(None) => return (history, Some(State::Ended)),
            Ok(Some(Ok(Event::Log(line)))) => {
                is_current |= line.time.is_some_and(|time| time >= started);
                history.add(line);
            }
            Ok(Some(Ok(Event::Gap(gap)))) => history.add_gap(gap),
            Ok(Some(event)) => {
                if let Some(end) = ending(event) {
                    return (history, Some(end));
                }
            }
        }
    }
    (history, None)
}

/// Adds lines for the tabs. Returns false if the feed was dropped.
fn publish(feed: &Weak<LogFeed>, chunk: &Chunk, sender: &watch::Sender<State>) -> bool {
    let Some(feed) = feed.upgrade() else {
        return false;
    };
    if chunk.len() > 0 {
        feed.lock().add(chunk);
        sender.send_replace(State::Open);
    }
    true
}
