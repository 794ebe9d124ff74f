//! The log of a run while it is written, across its segments.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tokio::sync::watch;

use super::{
    limits::LogLimits,
    retention::{Retention, RetentionTimes},
    segments::{files, path, segments},
};

/// The size of the end of a segment in which no line begins, so that a line of at most this length
/// is not split. At most a quarter of the segment.
const LINE_RESERVE: u64 = 64 * 1024;

/// The log of a run while it is written.
#[derive(Debug)]
pub(crate) struct LogFile {
    folder: PathBuf,
    run: u32,
    segment: u32,
    file: fs::File,
    length: u64,
    /// True if a part of a record follows the last whole record.
    is_torn: bool,
    limits: LogLimits,
    retention: Retention,
}

impl LogFile {
    /// Starts or continues the log of a run. Only the last two runs are kept,
    /// because clients cannot request older ones.
    pub(super) fn create(
        folder: PathBuf,
        run: u32,
        limits: LogLimits,
        times: RetentionTimes,
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
            retention: Retention::new(folder.clone(), run, known, limits, times),
            folder,
            run,
            segment,
            file,
            is_torn: false,
            limits,
        })
    }

    pub(super) fn retention(&self) -> Retention {
        self.retention.clone()
    }

    /// Returns the current segment and its length.
    pub(super) fn end(&self) -> (u32, u64) {
        (self.segment, self.length)
    }

    /// Returns true if the given number of additional bytes requires a new segment. A line is not
    /// split across segments unless it is longer than the reserve.
    pub(super) fn is_full(&self, more: usize, amid_a_line: bool) -> bool {
        let maximum = self.limits.max_size;
        let allowed = match amid_a_line {
            true => maximum,
            false => maximum.saturating_sub(LINE_RESERVE.min(maximum / 4)),
        };
        self.length > 0 && self.length.saturating_add(more as u64) > allowed
    }

    /// Starts a new segment as soon as the log's readers permit it, or immediately when `stop`
    /// becomes true. Returns the number of readers that were dropped.
    pub(super) async fn rotate(&mut self, stop: &watch::Receiver<bool>) -> io::Result<usize> {
        let mut stop = stop.clone();
        let waited = tokio::select! {
            biased;
            given_up = self.retention.wait_for_room() => Some(given_up),
            // A dropped sender counts as a stop.
            _ = stop.wait_for(|stop| *stop) => None,
        };
        self.file = open(&self.folder, self.run, self.segment + 1)?;
        self.segment += 1;
        self.length = 0;
        self.is_torn = false;
        self.retention.rotated(self.segment, waited.is_none());
        Ok(waited.unwrap_or(0))
    }

    /// Writes all records or none.
    pub(super) fn write(&mut self, records: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.length)?;
            self.is_torn = false;
        }
        if let Err(error) = io::Write::write_all(&mut self.file, records) {
            self.is_torn = self.file.set_len(self.length).is_err();
            return Err(error);
        }
        self.length += records.len() as u64;
        Ok(())
    }

    /// Returns true if the file was removed.
    pub(super) fn is_removed(&self) -> bool {
        !path(&self.folder, self.run, self.segment).exists()
    }

    /// The directory of the container's files.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
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
