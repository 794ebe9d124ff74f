//! Decides which files of a run's log are kept. The latest files are always kept, older files
//! within limits of time and size while a reader needs them.
//!
//! For a reader that is slower than the container, the node keeps up to [`READER_FILES`] times the
//! usual number of files. After that, the container waits for the reader. A reader that does not
//! finish a file within [`READER_TIMEOUT`] is dropped, so that it neither fills the disk nor blocks
//! the container. At the start of a run, the container also waits for a first reader, up to
//! [`FIRST_READER_TIMEOUT`]: a client can request the log only after the container has started.

use std::{
    collections::{HashMap, VecDeque},
    fs,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};

use super::{limits::LogLimits, segments};

/// Up to this many times `max_files` are kept for slow readers.
const READER_FILES: u32 = 10;

/// The time for which a completed file is kept for readers that are about to connect or reconnect,
/// within the same limit.
const RECONNECT_WINDOW: Duration = Duration::from_secs(30);

/// The time for which a container waits until its slowest reader finishes a file.
const READER_TIMEOUT: Duration = Duration::from_secs(30);

/// The time after its start for which a container waits for the first reader instead of losing the
/// beginning of its log.
const FIRST_READER_TIMEOUT: Duration = Duration::from_secs(5);

/// The free space on the file system in bytes below which only the usual number of files is kept.
const MIN_FREE_SPACE: u64 = 1 << 30;

/// The interval at which retained files are checked for removal.
const TRIM_INTERVAL: Duration = Duration::from_secs(5);

/// The times for which files are kept for readers. Tests use shorter times.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetentionTimes {
    pub(super) connect: Duration,
    pub(super) first_reader: Duration,
    pub(super) reader: Duration,
    pub(super) trim: Duration,
}

impl Default for RetentionTimes {
    fn default() -> Self {
        Self {
            connect: RECONNECT_WINDOW,
            first_reader: FIRST_READER_TIMEOUT,
            reader: READER_TIMEOUT,
            trim: TRIM_INTERVAL,
        }
    }
}

/// The files of one run, shared by its writer and its readers.
#[derive(Debug, Clone)]
pub(super) struct Retention(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    run: u32,
    limits: LogLimits,
    times: RetentionTimes,
    state: Mutex<State>,
    /// Notified when a reader advances or is dropped.
    moved: Notify,
}

#[derive(Debug)]
struct State {
    /// The oldest existing file.
    first: u32,
    /// The file that is being written.
    current: u32,
    /// The completion times of files, oldest first.
    completed: VecDeque<(u32, Instant)>,
    /// The current file of each reader.
    readers: HashMap<u64, u32>,
    next_reader: u64,
    /// The time until which the container waits for the first reader. `None` if there was one.
    first_reader_until: Option<Instant>,
    /// True if the run has ended.
    ended: bool,
    trimming: bool,
}

impl State {
    fn slowest(&self) -> Option<u32> {
        self.readers.values().copied().min()
    }

    /// Returns the oldest file to keep if at most `most` files may exist.
    fn first_kept(&self, usual: u32, most: u32, young: Duration, now: Instant) -> u32 {
        let all = self.current.saturating_add(1);
        let recent = self
            .completed
            .iter()
            .find(|(_, at)| now.saturating_duration_since(*at) < young)
            .map_or(u32::MAX, |(file, _)| *file);
        let needed = self.slowest().unwrap_or(u32::MAX).min(recent);
        let first = needed.min(all.saturating_sub(usual));
        // After the end, the number of files no longer grows.
        let bound = if self.ended {
            0
        } else {
            all.saturating_sub(most)
        };
        first.max(bound).max(self.first)
    }
}

impl Retention {
    pub(super) fn new(
        folder: PathBuf,
        run: u32,
        (first, current): (u32, u32),
        limits: LogLimits,
        times: RetentionTimes,
    ) -> Self {
        // The log of a run that continues has already been available.
        let is_new = current == 0;
        Self(Arc::new(Inner {
            folder,
            run,
            limits,
            times,
            state: Mutex::new(State {
                first,
                current,
                completed: VecDeque::new(),
                readers: HashMap::new(),
                next_reader: 0,
                first_reader_until: is_new.then(|| Instant::now() + times.first_reader),
                ended: false,
                trimming: false,
            }),
            moved: Notify::new(),
        }))
    }

    /// Adds a reader that starts at the oldest file. Files that it has not read are kept.
    pub(super) fn join(&self) -> Reader {
        let mut state = self.0.state.lock();
        let id = state.next_reader;
        state.next_reader = state.next_reader.wrapping_add(1);
        let first = state.first;
        state.readers.insert(id, first);
        state.first_reader_until = None;
        drop(state);
        self.0.moved.notify_waiters();
        Reader {
            id,
            retention: self.clone(),
        }
    }

    /// Returns the usual and the maximum number of files.
    fn bounds(&self) -> (u32, u32) {
        let usual = self.0.limits.max_files.max(2);
        match longshore_files::free_bytes(&self.0.folder) < MIN_FREE_SPACE {
            true => (usual, usual),
            false => (usual, usual.saturating_mul(READER_FILES)),
        }
    }

    /// Waits until another file may be started. Returns the number of readers
    /// that were dropped because they did not finish a file in time.
    pub(super) async fn wait_for_room(&self) -> usize {
        let most = self.bounds().1;
        let mut seen = None;
        let mut give_up_at = Instant::now();
        loop {
            let moved = self.0.moved.notified();
            {
                let mut state = self.0.state.lock();
                // Count the next file.
                let needed = state.current.saturating_add(2).saturating_sub(most);
                let slowest = state.slowest();
                let now = Instant::now();
                let first_reader_until = state.first_reader_until.filter(|until| now < *until);
                if let Some(until) = first_reader_until.filter(|_| state.first < needed) {
                    give_up_at = until;
                } else if slowest.is_none_or(|slowest| slowest >= needed) {
                    return 0;
                } else if seen != slowest {
                    seen = slowest;
                    give_up_at = now + self.0.times.reader;
                } else if now >= give_up_at {
                    let before = state.readers.len();
                    state.readers.retain(|_, file| *file >= needed);
                    return before - state.readers.len();
                }
            }
            tokio::select! {
                () = moved => {}
                () = sleep_until(give_up_at) => {}
            }
        }
    }

    /// Records a new current file and removes unneeded files, unless `keep_all`
    /// is set.
    pub(super) fn rotated(&self, current: u32, keep_all: bool) {
        {
            let mut state = self.0.state.lock();
            let completed = state.current;
            state.completed.push_back((completed, Instant::now()));
            state.current = current;
        }
        if !keep_all {
            self.trim();
        }
        self.trim_later();
    }

    /// Records the end of the run.
    pub(super) fn end(&self) {
        self.0.state.lock().ended = true;
        self.trim_later();
    }

    /// Removes unneeded files. Returns true if more than the usual number remain.
    fn trim(&self) -> bool {
        let (usual, most) = self.bounds();
        let mut state = self.0.state.lock();
        let first = state.first_kept(usual, most, self.0.times.connect, Instant::now());
        // The lock is held, so that no reader starts at a file that is being
        // removed.
        for file in state.first..first {
            let _ = fs::remove_file(segments::path(&self.0.folder, self.0.run, file));
        }
        state.first = first;
        while state
            .completed
            .front()
            .is_some_and(|(file, _)| *file < first)
        {
            state.completed.pop_front();
        }
        state.current.saturating_sub(first) >= usual
    }

    /// Repeats the trim while more files than usual remain.
    fn trim_later(&self) {
        let usual = self.0.limits.max_files.max(2);
        {
            let mut state = self.0.state.lock();
            if state.trimming || state.current.saturating_sub(state.first) < usual {
                return;
            }
            state.trimming = true;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            self.0.state.lock().trimming = false;
            return;
        };
        let retention = self.clone();
        runtime.spawn(async move {
            loop {
                sleep(retention.0.times.trim).await;
                if !retention.trim() {
                    let mut state = retention.0.state.lock();
                    state.trimming = false;
                    return;
                }
            }
        });
    }
}

/// A reader of a run that is being written. Its files are kept until it is dropped or too slow.
#[derive(Debug)]
pub(super) struct Reader {
    id: u64,
    retention: Retention,
}

impl Reader {
    /// Records the reader's current file.
    pub(super) fn move_to(&self, file: u32) {
        if let Some(own) = self.retention.0.state.lock().readers.get_mut(&self.id) {
            *own = file;
        }
        self.retention.0.moved.notify_waiters();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.retention.0.state.lock().readers.remove(&self.id);
        self.retention.0.moved.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::pin::pin;

    use futures::{FutureExt as _, poll};

    use super::*;

    fn state(current: u32, readers: &[u32], completed: &[(u32, u64)], now: Instant) -> State {
        State {
            first: 0,
            current,
            completed: completed
                .iter()
                .map(|(file, ago)| (*file, now - Duration::from_secs(*ago)))
                .collect(),
            readers: (0..).zip(readers.iter().copied()).collect(),
            next_reader: 0,
            first_reader_until: None,
            ended: false,
            trimming: false,
        }
    }

    /// A run that has filled all files that may exist.
    async fn full_run(folder: &std::path::Path, first_reader: Duration) -> Retention {
        let limits = LogLimits {
            max_size: 4000,
            max_files: 2,
        };
        let times = RetentionTimes {
            first_reader,
            ..RetentionTimes::default()
        };
        let retention = Retention::new(folder.to_owned(), 0, (0, 0), limits, times);
        for file in 1..retention.bounds().1 {
            assert_eq!(retention.wait_for_room().await, 0);
            retention.rotated(file, false);
        }
        retention
    }

    #[tokio::test]
    async fn a_new_run_waits_for_its_first_reader() {
        let folder = tempfile::tempdir().unwrap();
        let retention = full_run(folder.path(), Duration::from_secs(3600)).await;
        let mut waiting = pin!(retention.wait_for_room());
        assert!(poll!(&mut waiting).is_pending());
        // The first reader now determines when the container continues.
        let reader = retention.join();
        assert!(poll!(&mut waiting).is_pending());
        reader.move_to(1);
        assert_eq!(waiting.await, 0);
        // The container does not wait for further readers.
        drop(reader);
        retention.rotated(retention.bounds().1, false);
        assert_eq!(retention.wait_for_room().now_or_never(), Some(0));
    }

    #[tokio::test]
    async fn a_run_without_readers_continues_after_a_timeout() {
        let folder = tempfile::tempdir().unwrap();
        let retention = full_run(folder.path(), Duration::from_millis(1)).await;
        assert_eq!(retention.wait_for_room().await, 0);
        retention.rotated(retention.bounds().1, false);
        assert_eq!(retention.wait_for_room().now_or_never(), Some(0));
    }

    #[test]
    fn retained_files() {
        let now = Instant::now() + Duration::from_secs(1000);
        let kept = |state: State| state.first_kept(3, 30, Duration::from_secs(30), now);
        // Without readers, the latest three files are kept.
        assert_eq!(kept(state(9, &[], &[], now)), 7);
        assert_eq!(kept(state(1, &[], &[], now)), 0);
        // For a slow reader, unread files are kept up to the limit.
        assert_eq!(kept(state(9, &[8, 2], &[], now)), 2);
        assert_eq!(kept(state(99, &[2], &[], now)), 70);
        // Recently completed files are kept up to the limit.
        assert_eq!(kept(state(9, &[], &[(3, 40), (4, 20), (5, 1)], now)), 4);
        assert_eq!(kept(state(99, &[], &[(4, 20)], now)), 70);
        // After the end, all files that a reader needs are kept.
        let mut ended = state(99, &[2], &[], now);
        ended.ended = true;
        assert_eq!(kept(ended), 2);
    }
}
