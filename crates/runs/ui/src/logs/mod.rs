//! Follows runs, and keeps the last lines of each for all tabs.
//!
//! A run is followed once, however many tabs show it. Its lines are kept in a ring of limited
//! size. Each tab has a position in the ring: a slow tab loses lines, and shows how many, but
//! holds no memory.

mod chunk;
mod events;
mod feed;
mod history;
mod ring;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use longshore_client::Cluster;
use longshore_launcher::Run;

pub(crate) use events::log_events;
use feed::LogFeed;

use crate::route::RunKey;

/// The time for which the lines of a run are kept after the last tab was closed.
const KEEP: Duration = Duration::from_secs(60);
/// The maximum number of runs whose lines are kept, unless tabs show more.
const MOST_FEEDS: usize = 4;

/// The followed runs.
#[derive(Debug)]
pub(crate) struct Logs {
    cluster: Cluster,
    feeds: Mutex<BTreeMap<RunKey, (Arc<LogFeed>, Instant)>>,
}

impl Logs {
    pub(crate) fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            feeds: Mutex::default(),
        }
    }

    /// The lines of a run. Starts to follow it if no tab shows it yet.
    pub(crate) fn of(&self, key: &RunKey, run: &Run, now: Instant) -> Arc<LogFeed> {
        let mut feeds = self.lock();
        if let Some((feed, used)) = feeds.get_mut(key)
            && !feed.has_failed()
        {
            *used = now;
            return Arc::clone(feed);
        }
        let feed = LogFeed::start(self.cluster.clone(), run.clone());
        feeds.insert(key.clone(), (Arc::clone(&feed), now));
        sweep(&mut feeds, now);
        feed
    }

    /// Stops to follow runs that no tab shows any more.
    pub(crate) fn sweep(&self, now: Instant) {
        sweep(&mut self.lock(), now);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunKey, (Arc<LogFeed>, Instant)>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sweep(feeds: &mut BTreeMap<RunKey, (Arc<LogFeed>, Instant)>, now: Instant) {
    for (feed, used) in feeds.values_mut() {
        if is_shown(feed) {
            *used = now;
        }
    }
    feeds.retain(|_, (feed, used)| is_shown(feed) || now.duration_since(*used) < KEEP);
    while feeds.len() > MOST_FEEDS {
        let unused = feeds.iter().filter(|(_, (feed, _))| !is_shown(feed));
        let oldest = unused.min_by_key(|(_, (_, used))| *used);
        let Some(key) = oldest.map(|(key, _)| key.clone()) else {
            return;
        };
        feeds.remove(&key);
    }
}

/// Returns true if a tab has a reference.
fn is_shown(feed: &Arc<LogFeed>) -> bool {
    Arc::strong_count(feed) > 1
}
