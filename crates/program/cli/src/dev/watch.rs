//! Detects changes in a folder: by inotify, and by comparison at intervals, because network file
//! systems do not report the changes of other machines and the number of watches is limited.

use std::{
    os::fd::OwnedFd,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use longshore::launcher::bundle::Manifest;
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use tokio::sync::mpsc;

/// The time for which the folder must be unchanged after a change, because an editor or a version
/// control system writes several files.
const QUIET: Duration = Duration::from_millis(15);
/// The time for which consecutive changes may delay the sending.
const MOST_QUIET: Duration = Duration::from_millis(500);
/// The shortest interval between comparisons without events.
const COMPARE_INTERVAL: Duration = Duration::from_secs(2);
/// The interval is at least this many times the duration of a comparison.
const COMPARE_RATIO: u32 = 20;

/// The changes that matter: files that were written, created, moved, removed, or made executable.
const EVENTS: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::ONLYDIR);

/// Watches a folder.
pub(super) struct Watch {
    /// `None` where the kernel offers no watches.
    events: Option<Events>,
    /// True if all folders are watched.
    complete: bool,
    interval: Duration,
}

/// The kernel's queue of events, and a message each time that it has events.
struct Events {
    queue: Arc<OwnedFd>,
    arrived: mpsc::Receiver<()>,
}

impl Watch {
    pub(super) fn start() -> Self {
        let queue = init(CreateFlags::CLOEXEC);
        Self {
            complete: queue.is_ok(),
            events: queue.ok().map(Events::of),
            interval: COMPARE_INTERVAL,
        }
    }

    /// Watches the folders of a manifest. Call it before the state of the folder is read. Returns
    /// true if all folders are watched. Changes in the others are found by comparison.
    pub(super) fn add(&mut self, root: &Path, manifest: &Manifest) -> bool {
        let Some(events) = &self.events else {
            return false;
        };
        let folders = manifest.folders().map(|folder| root.join(folder));
        let mut all = std::iter::once(root.to_owned()).chain(folders);
        // A folder that has just been removed is not an error.
        let failed = all.any(|folder| {
            let added = add_watch(&events.queue, &folder, EVENTS);
            added.is_err_and(|error| error != rustix::io::Errno::NOENT)
        });
        self.complete = !failed;
        self.complete
    }

    /// Sets the interval between comparisons from the duration of a comparison.
    pub(super) fn compared(&mut self, took: Duration) {
        self.interval = COMPARE_INTERVAL.max(took.saturating_mul(COMPARE_RATIO));
        if !self.complete {
            self.interval = self
                .interval
                .min(COMPARE_INTERVAL.max(took.saturating_mul(3)))
                / 4;
        }
    }

    /// Waits for a change that is followed by quiet, or until the next comparison is due. Returns
    /// the time at which the change was noticed.
    pub(super) async fn changed(&mut self) -> Instant {
        let Some(events) = &mut self.events else {
            tokio::time::sleep(self.interval).await;
            return Instant::now();
        };
        if tokio::time::timeout(self.interval, events.arrive())
            .await
            .is_err()
        {
            return Instant::now();
        }
        let noticed = Instant::now();
        while noticed.elapsed() < MOST_QUIET {
            if tokio::time::timeout(QUIET, events.arrive()).await.is_err() {
                break;
            }
        }
        noticed
    }
}

impl Events {
    /// Reads the events in a thread, and discards them: the folder is compared as a whole.
    fn of(queue: OwnedFd) -> Self {
        let queue = Arc::new(queue);
        let reading = Arc::clone(&queue);
        let (send, arrived) = mpsc::channel(1);
        std::thread::spawn(move || {
            let mut buffer = [0_u8; 16 * 1024];
            loop {
                match rustix::io::read(&reading, &mut buffer) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(_) => return,
                }
                if let Err(mpsc::error::TrySendError::Closed(())) = send.try_send(()) {
                    return;
                }
            }
        });
        Self { queue, arrived }
    }

    async fn arrive(&mut self) {
        if self.arrived.recv().await.is_none() {
            std::future::pending().await
        }
    }
}
