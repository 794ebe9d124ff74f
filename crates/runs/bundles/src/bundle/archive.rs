//! Creates the archive of a folder.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use longshore_archive::{FileError, append_file, is_confined};
use tar::{EntryType, Header};

use super::{
    BundleError, Progress,
    compress::ParallelGzip,
    entry::{Found, Kind, totals},
    sink::{Data, Sink},
};

/// The modification time of every entry, in seconds since 1970: the first second of 1980,
/// the earliest time that zip files, and so Python wheels, can represent.
const TIME: u64 = 315_532_800;
/// The number of bytes of a file between two calls of `progress`.
const REPORTED: u64 = 1024 * 1024;

/// Returns the archive, its size and its sha256.
pub(super) fn archive(
    folder: &Path,
    entries: &[Found],
    stop: &AtomicBool,
    progress: impl FnMut(Progress),
) -> Result<(Data, u64, String), BundleError> {
    let compressor = ParallelGzip::new(Sink::default()).map_err(BundleError::Write)?;
    let mut archive = tar::Builder::new(compressor);
    let (total_files, total_bytes) = totals(entries);
    let mut meter = Meter {
        done: Progress {
            total_files,
            total_bytes,
            ..Progress::default()
        },
        reported: 0,
        progress,
        stop,
    };
    for entry in entries {
        let appended = append(&mut archive, folder, entry, &mut meter);
        if meter.is_stopped() {
            return Err(BundleError::Stopped);
        }
        appended?;
        if entry.kind != Kind::Folder {
            meter.done.files += 1;
            meter.report();
        }
    }
    let sink = archive.into_inner().and_then(ParallelGzip::finish);
    sink.and_then(Sink::finish).map_err(BundleError::Write)
}

/// Counts and reports the bytes read, and checks the stop flag.
struct Meter<'a, F> {
    done: Progress,
    /// The byte count of the last report.
    reported: u64,
    progress: F,
    stop: &'a AtomicBool,
}

impl<F: FnMut(Progress)> Meter<'_, F> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn read(&mut self, bytes: usize) {
        self.done.bytes = self.done.bytes.saturating_add(bytes as u64);
        if self.done.bytes - self.reported >= REPORTED {
            self.report();
        }
    }

    fn report(&mut self) {
        self.reported = self.done.bytes;
        (self.progress)(self.done);
    }
}

/// A file whose reads are counted.
struct Metered<'a, 'b, F> {
    file: File,
    meter: &'a mut Meter<'b, F>,
}

impl<F: FnMut(Progress)> Read for Metered<'_, '_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.meter.is_stopped() {
            return Err(io::Error::other("interrupted"));
        }
        let read = self.file.read(buffer)?;
        self.meter.read(read);
        Ok(read)
    }
}

fn append<W: Write>(
    archive: &mut tar::Builder<W>,
    folder: &Path,
    entry: &Found,
    meter: &mut Meter<'_, impl FnMut(Progress)>,
) -> Result<(), BundleError> {
    let full = folder.join(&entry.path);
    let read = |source| BundleError::Read {
        path: full.clone(),
        source,
    };
    let mut header = Header::new_gnu();
    header.set_mtime(TIME);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    match entry.kind {
        Kind::Folder => {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(0o755);
            archive
                .append_data(&mut header, &entry.path, io::empty())
                .map_err(BundleError::Write)
        }
        Kind::Link => {
            let target = full.read_link().map_err(read)?;
            if !is_confined(&entry.path, &target) {
                return Err(BundleError::Link {
                    path: entry.path.clone(),
                    target,
                });
            }
            header.set_entry_type(EntryType::Symlink);
            header.set_mode(0o777);
            archive
                .append_link(&mut header, &entry.path, &target)
                .map_err(BundleError::Write)
        }
        Kind::File => {
            let file = File::open(&full).map_err(read)?;
            let file = Metered { file, meter };
            header.set_entry_type(EntryType::Regular);
            header.set_mode(if entry.executable { 0o755 } else { 0o644 });
            let archived = append_file(archive, &mut header, &entry.path, file, entry.size);
            archived.map_err(|error| match error {
                FileError::Changed => BundleError::Changed { path: full.clone() },
                FileError::Read(error) => read(error),
                FileError::Write(error) => BundleError::Write(error),
                other => read(io::Error::other(other)),
            })
        }
    }
}
