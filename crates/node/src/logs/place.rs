//! Where a container's log is: `RUN.log`, and when that has grown enough
//! `RUN.1.log`, `RUN.2.log` and so on. The oldest are removed; none is renamed,
//! so that readers go from one to the next without a race.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tokio::sync::watch;

use super::retention::{Patience, Retention};

/// How much of a container's log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// A file that would grow over so many bytes is left, and another begun: the
    /// kubelet's `containerLogMaxSize`.
    pub max_size: u64,
    /// So many files are kept of a run, the one that grows among them: the
    /// kubelet's `containerLogMaxFiles`. At least two. Up to ten times as many
    /// are kept for the 30 s after they were completed, and while a reader that
    /// is slower than the container still needs them. Beyond that the container
    /// waits for the reader, which has 30 s for each file.
    pub max_files: u32,
}

impl Default for LogLimits {
    /// The kubelet's own: 10 MiB and 5 files.
    fn default() -> Self {
        Self {
            max_size: 10 << 20,
            max_files: 5,
        }
    }
}

/// The path of a file.
pub(super) fn path(folder: &Path, run: u32, segment: u32) -> PathBuf {
    folder.join(match segment {
        0 => format!("{run}.log"),
        _ => format!("{run}.{segment}.log"),
    })
}

/// The files of a container by run and segment, oldest first.
pub(super) fn files(folder: &Path) -> Vec<(u32, u32)> {
    let read = |name: &str| {
        let name = name.strip_suffix(".log")?;
        let (run, segment) = name.split_once('.').unwrap_or((name, "0"));
        Some((run.parse().ok()?, segment.parse().ok()?))
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter_map(|entry| read(entry.file_name().to_str()?))
        .collect();
    files.sort_unstable();
    files
}

/// The segments of a run, oldest first.
pub(super) fn segments(folder: &Path, run: u32) -> Vec<u32> {
    let files = files(folder).into_iter();
    files
        .filter(|(of, _)| *of == run)
        .map(|(_, segment)| segment)
        .collect()
}

/// Keeps the usual number of files of each run of a container.
pub(super) fn keep_latest(folder: &Path, limits: LogLimits) {
    let files = files(folder);
    let kept = limits.max_files.max(2);
    for (run, segment) in &files {
        let last = files.iter().rev().find(|(other, _)| other == run);
        let last = last.map_or(0, |(_, last)| *last);
        if last - segment >= kept {
            let _ = fs::remove_file(path(folder, *run, *segment));
        }
    }
}

/// A run's log as it is written.
#[derive(Debug)]
pub(crate) struct LogFile {
    folder: PathBuf,
    run: u32,
    segment: u32,
    file: fs::File,
    length: u64,
    limits: LogLimits,
    retention: Retention,
}

impl LogFile {
    /// Begins a run's log, or goes on with it. Only the last two runs are kept:
    /// others cannot be asked for.
    pub(super) fn create(
        folder: PathBuf,
        run: u32,
        limits: LogLimits,
        patience: Patience,
    ) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        let present = segments(&folder, run);
        let first = present.first().copied().unwrap_or(0);
        let segment = present.last().copied().unwrap_or(0);
        let file = open(&folder, run, segment)?;
        for (old, segment) in files(&folder) {
            if old + 1 < run {
                let _ = fs::remove_file(path(&folder, old, segment));
            }
        }
        let known = (first, segment);
        Ok(Self {
            length: file.metadata()?.len(),
            retention: Retention::new(folder.clone(), run, known, limits, patience),
            folder,
            run,
            segment,
            file,
            limits,
        })
    }

    pub(super) fn retention(&self) -> Retention {
        self.retention.clone()
    }

    /// The segment that is written, and its length.
    pub(super) fn end(&self) -> (u32, u64) {
        (self.segment, self.length)
    }

    /// Whether so many bytes more are for another segment. A line is not torn,
    /// unless it does not end for very long.
    pub(super) fn is_full(&self, more: usize, amid_a_line: bool) -> bool {
        let factor = if amid_a_line { 2 } else { 1 };
        let allowed = self.limits.max_size.saturating_mul(factor);
        self.length > 0 && self.length.saturating_add(more as u64) > allowed
    }

    /// Goes on in another segment, as soon as the readers of the log leave room
    /// for it, or at once when `stop` comes true. Returns how many readers were
    /// given up.
    pub(super) async fn rotate(&mut self, stop: &watch::Receiver<bool>) -> io::Result<usize> {
        let mut stop = stop.clone();
        let waited = tokio::select! {
            biased;
            given_up = self.retention.wait_for_room() => Some(given_up),
            // The sender's end counts as a stop.
            _ = stop.wait_for(|stop| *stop) => None,
        };
        self.file = open(&self.folder, self.run, self.segment + 1)?;
        self.segment += 1;
        self.length = 0;
        self.retention.rotated(self.segment, waited.is_none());
        Ok(waited.unwrap_or(0))
    }

    pub(super) fn write(&mut self, records: &[u8]) -> io::Result<()> {
        io::Write::write_all(&mut self.file, records)?;
        self.length += records.len() as u64;
        Ok(())
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        self.retention.end();
    }
}

fn open(folder: &Path, run: u32, segment: u32) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options
        .append(true)
        .create(true)
        .open(path(folder, run, segment))
}
