//! Where a container's log is: `RUN.log`, and when that has grown enough
//! `RUN.1.log`, `RUN.2.log` and so on. The oldest are removed; none is renamed,
//! so that readers go from one to the next without a race.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicU32, Ordering},
    },
};

use parking_lot::Mutex;

/// So many times as many files as usual are kept for readers who are slow.
const FOR_READERS: u32 = 10;

/// How much of a container's log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// A file that would grow over so many bytes is left, and another begun: the
    /// kubelet's `containerLogMaxSize`.
    pub max_size: u64,
    /// So many files are kept of a run, the one that grows among them: the
    /// kubelet's `containerLogMaxFiles`. At least two; and more for a while, if
    /// somebody reads them who is slower than the container.
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

/// Who reads a log, and in which segment.
#[derive(Debug, Clone, Default)]
pub(super) struct Readers(Arc<Mutex<Vec<Weak<AtomicU32>>>>);

impl Readers {
    /// One more, as long as what it gets lives.
    pub(super) fn join(&self, segment: u32) -> Arc<AtomicU32> {
        let place = Arc::new(AtomicU32::new(segment));
        self.0.lock().push(Arc::downgrade(&place));
        place
    }

    /// The segment of the one who is furthest behind.
    fn last(&self) -> Option<u32> {
        let mut readers = self.0.lock();
        readers.retain(|reader| reader.strong_count() > 0);
        let places = readers.iter().filter_map(Weak::upgrade);
        places.map(|place| place.load(Ordering::Relaxed)).min()
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
    readers: Readers,
}

impl LogFile {
    /// Begins a run's log, or goes on with it. Only the last two runs are kept:
    /// others cannot be asked for.
    pub(super) fn create(folder: PathBuf, run: u32, limits: LogLimits) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        let segment = segments(&folder, run).last().copied().unwrap_or(0);
        let file = open(&folder, run, segment)?;
        for (old, segment) in files(&folder) {
            if old + 1 < run {
                let _ = fs::remove_file(path(&folder, old, segment));
            }
        }
        Ok(Self {
            length: file.metadata()?.len(),
            folder,
            run,
            segment,
            file,
            limits,
            readers: Readers::default(),
        })
    }

    pub(super) fn readers(&self) -> Readers {
        self.readers.clone()
    }

    /// The segment that is written, and its length.
    pub(super) fn end(&self) -> (u32, u64) {
        (self.segment, self.length)
    }

    /// Whether so many bytes more are for another segment. A line is not torn,
    /// unless it does not end for very long.
    pub(super) fn is_full(&self, more: usize, amid_a_line: bool) -> bool {
        let allowed = self.limits.max_size * if amid_a_line { 2 } else { 1 };
        self.length > 0 && self.length + more as u64 > allowed
    }

    /// Goes on in another segment.
    pub(super) fn rotate(&mut self) -> io::Result<()> {
        self.file = open(&self.folder, self.run, self.segment + 1)?;
        self.segment += 1;
        self.length = 0;
        let kept = self.limits.max_files.max(2);
        let but = |kept: u32| (self.segment + 1).saturating_sub(kept);
        // What somebody is about to read stays, within reason.
        let first = self.readers.last().unwrap_or(u32::MAX).min(but(kept));
        let first = first.max(but(kept.saturating_mul(FOR_READERS)));
        for old in segments(&self.folder, self.run) {
            if old < first {
                let _ = fs::remove_file(path(&self.folder, self.run, old));
            }
        }
        Ok(())
    }

    pub(super) fn write(&mut self, records: &[u8]) -> io::Result<()> {
        io::Write::write_all(&mut self.file, records)?;
        self.length += records.len() as u64;
        Ok(())
    }
}

fn open(folder: &Path, run: u32, segment: u32) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options
        .append(true)
        .create(true)
        .open(path(folder, run, segment))
}
