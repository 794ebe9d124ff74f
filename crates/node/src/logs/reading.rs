//! Goes through the files of a run, from one to the next, to where it is
//! written now, and on from there.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::watch;

use super::{
    query::LogQuery,
    record::{self, Filter},
    retention::{Reader, Retention},
    segments,
    store::Progress,
};

/// Bytes read from a file at once.
const CHUNK: usize = 64 * 1024;
/// How much the times of files and of records may differ.
const SLACK: Duration = Duration::from_secs(2);

/// A log that is read.
pub(super) struct Reading {
    folder: PathBuf,
    run: u32,
    segment: u32,
    file: File,
    position: u64,
    /// The last segment, and how much of it there is to read.
    end: (u32, u64),
    /// Only when following.
    progress: Option<watch::Receiver<Progress>>,
    filter: Filter,
    /// Keeps the segments that are still to be read.
    reader: Option<Reader>,
}

impl Reading {
    pub(super) fn open(
        folder: PathBuf,
        run: u32,
        written: Option<(watch::Receiver<Progress>, Retention)>,
        query: &LogQuery,
    ) -> io::Result<Self> {
        let (progress, retention) = written.unzip();
        let reader = retention.map(|retention| retention.join());
        // First where it ends: what is rotated meanwhile is not missed.
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
            // What was last written long before has nothing of it.
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

    /// The next bytes; `None` at the end.
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
                    // What comes next is the end.
                    (self.progress, self.end) = (None, (self.segment, self.position));
                    return Some(Err(error));
                }
            }
        }
        Some(Ok(Bytes::from(out)))
    }

    /// Reads, or goes to where there is more to read; `false`: nowhere.
    async fn step(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let length = match self.segment == self.end.0 {
            true => self.end.1,
            // It has all that it will ever have.
            false => self.file.metadata()?.len(),
        };
        if self.position < length {
            return self.read(length, out).map(|()| true);
        }
        if self.segment < self.end.0 {
            return self.turn_over();
        }
        Ok(self.wait_for_more().await)
    }

    /// Goes to the next segment.
    fn turn_over(&mut self) -> io::Result<bool> {
        let next = self.segment + 1;
        match File::open(segments::path(&self.folder, self.run, next)) {
            Ok(file) => {
                (self.segment, self.file, self.position) = (next, file, 0);
                if let Some(reader) = &self.reader {
                    reader.move_to(next);
                }
                Ok(true)
            }
            // Removed before it was read: lines are missing, and an end with an
            // error says so without a line that the container did not write.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.folder.exists() => {
                Err(io::Error::other(
                    "the log was rotated away before its reader came to it: lines are lost",
                ))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether there is more to read.
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
        // The writer is gone; its last word stays.
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
        // Records are shorter than a chunk, so there is a newline in it, unless
        // the machine stopped while the last one was written.
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

/// The files of a run, oldest first, as far as they are still there.
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

/// Whether a file was last written before that time, for certain.
fn ends_before(file: &File, since: Timestamp) -> bool {
    let since = SystemTime::from(since);
    let written = file
        .metadata()
        .and_then(|known: fs::Metadata| known.modified());
    written.is_ok_and(|written| written.checked_add(SLACK).is_some_and(|at| at < since))
}

/// Where the last lines of a file begin, and how many of those wanted it has.
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
        // What comes before the first newline may be the end of a record.
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
