//! Reads the segments of a run in order, up to the current end and beyond it
//! when following.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use jiff::Timestamp;
use longshore_node_api::LogRequest;
use tokio::sync::watch;

use super::{
    record::{self, Filter},
    retention::{Reader, Retention},
    segments,
    store::Progress,
};

/// Number of bytes that are read at once.
const CHUNK: usize = 64 * 1024;
/// Maximum difference between file times and record times.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(2);

/// A log that is being read.
pub(super) struct Reading {
    folder: PathBuf,
    run: u32,
    segment: u32,
    file: File,
    position: u64,
    /// The last segment, and the length to read of it.
    end: (u32, u64),
    /// Set only when following.
    progress: Option<watch::Receiver<Progress>>,
    filter: Filter,
    /// Retains the segments that are still to be read.
    reader: Option<Reader>,
}

impl Reading {
    pub(super) fn open(
        folder: PathBuf,
        run: u32,
        written: Option<(watch::Receiver<Progress>, Retention)>,
        query: &LogRequest,
    ) -> io::Result<Self> {
        let (progress, retention) = written.unzip();
        let reader = retention.map(|retention| retention.join());
        // The end is read first, so that a later rotation is not missed.
        let written = progress.as_ref().map(|progress| *progress.borrow());
        let mut files = open_all(&folder, run)?;
        let last = files.last().map_or(Ok((0, 0)), |(segment, file)| {
            file.metadata().map(|known| (*segment, known.len()))
        })?;
        let end = written.map_or(last, |known| (known.segment, known.length));
        let length = |segment: u32, file: &File| match segment == end.0 {
            true => Ok(end.1),
            false => file.metadata().map(|known| known.len()),
        };
        files.retain(|(segment, _)| *segment <= end.0);
        let mut position = 0;
        if let Some(mut count) = query.tail_lines {
            let mut begin = 0;
            for (at, (segment, file)) in files.iter().enumerate().rev() {
                let length = length(*segment, file)?;
                let found = find_tail(file, length, count)?;
                (begin, position) = (at, found.start);
                if found.lines >= count {
                    break;
                }
                count -= found.lines;
            }
            files.drain(..begin);
        } else if let Some(since) = query.since {
            // Files that were last written before `since` can be skipped.
            let is_old = |file: &File| ends_before(file, since);
            let wanted = files.iter().position(|(_, file)| !is_old(file));
            let last = files.len().saturating_sub(1);
            files.drain(..wanted.unwrap_or(last));
        }
        let first = files.into_iter().next();
        let (segment, file) = first.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        if let Some(reader) = &reader {
            reader.move_to(segment);
        }
        Ok(Self {
            folder,
            run,
            segment,
            file,
            position,
            end,
            progress: progress.filter(|_| query.follow),
            filter: Filter::new(query.since, query.timestamps, query.limit_bytes),
            reader,
        })
    }

    /// Returns the next bytes, or `None` at the end.
    pub(super) async fn next(&mut self) -> Option<io::Result<Bytes>> {
        let mut out = Vec::new();
        while out.is_empty() {
            if self.filter.is_done() {
                return None;
            }
            match self.step(&mut out).await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    // Nothing follows the error.
                    (self.progress, self.end) = (None, (self.segment, self.position));
                    return Some(Err(error));
                }
            }
        }
        Some(Ok(Bytes::from(out)))
    }

    /// Reads more, or moves to the next segment. Returns `false` at the end.
    async fn step(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let length = match self.segment == self.end.0 {
            true => self.end.1,
            // The segment is complete.
            false => self.file.metadata()?.len(),
        };
        if self.position < length {
            return self.read(length, out).map(|()| true);
        }
        if self.segment < self.end.0 {
            return self.open_next_segment();
        }
        Ok(self.wait_for_more().await)
    }

    /// Moves to the next segment.
    fn open_next_segment(&mut self) -> io::Result<bool> {
        let next = self.segment + 1;
        match File::open(segments::path(&self.folder, self.run, next)) {
            Ok(file) => {
                (self.segment, self.file, self.position) = (next, file, 0);
                if let Some(reader) = &self.reader {
                    reader.move_to(next);
                }
                Ok(true)
            }
            // The segment was removed before it was read. An error reports the
            // missing lines without adding a line that the container did not
            // write.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.folder.exists() => {
                Err(io::Error::other(
                    "the log was rotated away before its reader came to it: lines are lost",
                ))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits for new output. Returns true if there is more to read.
    async fn wait_for_more(&mut self) -> bool {
        let here = (self.segment, self.position);
        let Some(progress) = &mut self.progress else {
            return false;
        };
        let moved =
            |progress: &Progress| (progress.segment, progress.length) > here || progress.ended;
        let now = match progress.wait_for(moved).await {
            Ok(now) => Some((now.segment, now.length)),
            Err(_) => None,
        };
        // The writer was dropped; its last progress is final.
        self.end = now.unwrap_or_else(|| {
            let last = progress.borrow();
            (last.segment, last.length)
        });
        here < self.end
    }

    /// Reads whole records from `position`, at least one.
    fn read(&mut self, length: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let left = usize::try_from(length - self.position).unwrap_or(usize::MAX);
        let mut buffer = vec![0; left.min(CHUNK)];
        self.file.read_exact_at(&mut buffer, self.position)?;
        // Records are shorter than a chunk, so a chunk contains a newline,
        // unless the machine stopped while the last record was written.
        let whole = buffer
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(buffer.len(), |at| at + 1);
        out.reserve(whole);
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', &buffer[..whole]).chain([whole]) {
            if let Some(record) = record::parse(&buffer[begin..end]) {
                self.filter.pass(&record, out);
            }
            begin = (end + 1).min(whole);
        }
        self.position += whole as u64;
        Ok(())
    }
}

/// Opens the remaining files of a run, oldest first.
fn open_all(folder: &Path, run: u32) -> io::Result<Vec<(u32, File)>> {
    let mut files = Vec::new();
    for segment in segments::segments(folder, run) {
        match File::open(segments::path(folder, run, segment)) {
            Ok(file) => files.push((segment, file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}

/// Returns true if a file was certainly last written before `since`.
fn ends_before(file: &File, since: Timestamp) -> bool {
    let since = SystemTime::from(since);
    let written = file
        .metadata()
        .and_then(|known: fs::Metadata| known.modified());
    written.is_ok_and(|written| {
        written
            .checked_add(CLOCK_TOLERANCE)
            .is_some_and(|at| at < since)
    })
}

/// The start of a file's last lines, and the number of requested lines that the file has.
struct Tail {
    start: u64,
    lines: u64,
}

/// Finds the last lines, reading backwards only as far as needed.
fn find_tail(file: &File, length: u64, count: u64) -> io::Result<Tail> {
    let mut size = (CHUNK as u64).min(length);
    loop {
        let mut end = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut end, length - size)?;
        // The part before the first newline may be the end of a longer record.
        let whole = if size == length {
            0
        } else {
            end.iter()
                .position(|byte| *byte == b'\n')
                .map_or(end.len(), |at| at + 1)
        };
        let start = record::tail_start(&end[whole..], count);
        if start > 0 || size == length {
            let lines = record::lines(&end[whole + start..]);
            let start = length - size + (whole + start) as u64;
            return Ok(Tail { start, lines });
        }
        size = size.saturating_mul(4).min(length);
    }
}
