//! Unpacks an archive that may be hostile.

mod headers;

use std::{
    fs,
    io::{self, Read, Seek as _, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use tar::{Entry, EntryType};

use crate::{
    Moved,
    path::{clean, is_confined},
};
use headers::{Bounded, PATH_BYTES, check_records};

pub use headers::ENTRY_HEADER_BYTES;

/// How much an archive may unpack to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of all files together.
    pub bytes: u64,
    /// The most files, folders and links together, with the folders that only
    /// appear in the paths of others.
    pub entries: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 64 << 30,
            entries: 2_000_000,
        }
    }
}

/// How an archive is unpacked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unpack {
    /// How much it may be.
    pub limits: Limits,
    /// For archives of somebody's files as they are, not of a writer who knows
    /// these rules: links out of the tree, devices and pipes are left out, not
    /// refused; hard links become files of their own; times are kept.
    pub as_found: bool,
}

/// Why an archive is not unpacked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// An entry that an archive must not have.
    #[error("the archive is refused: {} {problem}", path.display())]
    Refused {
        /// The entry's path, as written.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// More than the limits allow.
    #[error("the archive is refused: it unpacks to more than {limit} {what}")]
    TooLarge {
        /// The limit.
        limit: u64,
        /// `bytes` or `files`.
        what: &'static str,
    },
    /// The archive cannot be read.
    #[error("the archive cannot be read: {0}")]
    Read(#[source] io::Error),
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Unpacks an uncompressed archive into a folder that exists. `progress` is
/// called after each file.
///
/// Refused are: absolute paths, `..`, paths through links, links out of the
/// tree, hard links, devices, pipes, an entry that comes twice, and more than
/// the limits. Set-user-id and like bits are taken off. The headers of an entry
/// may have [`ENTRY_HEADER_BYTES`], a path and the target of a link 4096 bytes.
/// Sparse files must be in GNU's format; their holes stay holes.
///
/// # Errors
/// Names the entry and what is wrong with it. What was written before stays:
/// the caller throws the folder away.
pub fn unpack(
    archive: impl Read,
    target: &Path,
    options: &Unpack,
    mut progress: impl FnMut(&Moved),
) -> Result<Moved, UnpackError> {
    let limits = options.limits;
    // What comes beyond the limit is never read: names and padding count,
    // which the slack allows for.
    let slack = limits
        .entries
        .saturating_mul(8 * 1024)
        .saturating_add(1 << 20);
    let reader = archive.take(limits.bytes.saturating_add(slack));
    let (reader, bound) = Bounded::new(reader);
    let mut archive = tar::Archive::new(reader);
    let mut unpacking = Unpacking {
        target,
        options,
        moved: Moved::default(),
        entries: 0,
    };
    let mut entries = archive.entries().map_err(UnpackError::Read)?;
    loop {
        bound.begin();
        let Some(entry) = entries.next() else {
            return Ok(unpacking.moved);
        };
        let mut entry = entry.map_err(|error| match bound.exceeded() {
            Some(path) => headers_too_large(&path),
            None => UnpackError::Read(error),
        })?;
        bound.end();
        unpacking.count_entry()?;
        if entry.header().entry_type() == EntryType::XGlobalHeader {
            if entry.size() > ENTRY_HEADER_BYTES {
                let path = entry.path().map_err(UnpackError::Read)?;
                return Err(headers_too_large(&path));
            }
        } else if unpacking.entry(&mut entry)? {
            unpacking.moved.files += 1;
            progress(&unpacking.moved);
        }
        // What is left of the content is no header of the next entry.
        io::copy(&mut entry, &mut io::sink()).map_err(UnpackError::Read)?;
    }
}

fn headers_too_large(path: &Path) -> UnpackError {
    let problem = format!(
        "has headers of more than {ENTRY_HEADER_BYTES} bytes (names, PAX records, sparse map)"
    );
    refused(path, &problem)
}

struct Unpacking<'a> {
    target: &'a Path,
    options: &'a Unpack,
    moved: Moved,
    /// Entries of the archive, and folders made for the paths of others.
    entries: u64,
}

impl Unpacking<'_> {
    /// Whether a file or a link was made.
    fn entry<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> Result<bool, UnpackError> {
        let path = entry.path().map_err(UnpackError::Read)?.into_owned();
        let path = short(path)?;
        if let Err(problem) = check_records(entry) {
            return self.left_out(&path, &problem);
        }
        let kind = entry.header().entry_type();
        let inside = clean(&path).map_err(|problem| refused(&path, problem))?;
        if inside.as_os_str().is_empty() {
            if kind == EntryType::Directory {
                return Ok(false);
            }
            return Err(refused(&path, "has no name"));
        }
        let full = self.target.join(&inside);
        self.make_parents(&inside, &path)?;
        match kind {
            EntryType::Directory => match full.symlink_metadata() {
                Ok(found) if found.is_dir() => Ok(false),
                Ok(_) => Err(refused(&path, "comes twice, as a file and as a folder")),
                Err(_) => folder(&full)
                    .map(|()| false)
                    .map_err(|source| written(&full, source)),
            },
            EntryType::Symlink => {
                let link = link_target(entry, &path)?;
                if !is_confined(&inside, &link) {
                    let problem = format!("is a link out of the folder, to {}", link.display());
                    return self.left_out(&path, &problem);
                }
                symlink(&link, &full).map_err(|error| new(error, &path, &full))?;
                Ok(true)
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                self.room_for(entry.size())?;
                let mode = entry.header().mode().map_err(UnpackError::Read)?;
                let mut file = create(&path, &full)?;
                let has_holes = kind == EntryType::GNUSparse;
                let copied = copy(entry, &mut file, &full, has_holes)?;
                if copied != entry.size() {
                    return Err(refused(&path, "is cut off"));
                }
                let time = entry.header().mtime().unwrap_or(0);
                self.finish(&file, mode, time)
                    .map_err(|source| written(&full, source))?;
                Ok(true)
            }
            EntryType::Link if self.options.as_found => {
                let first = link_target(entry, &path)?;
                self.copy_of(&first, &path, &full)
            }
            EntryType::Link => Err(refused(&path, "is a hard link")),
            EntryType::Char | EntryType::Block => self.left_out(&path, "is a device"),
            EntryType::Fifo => self.left_out(&path, "is a named pipe"),
            _ => self.left_out(&path, "is neither file, folder nor link"),
        }
    }

    fn count_entry(&mut self) -> Result<(), UnpackError> {
        let limit = self.options.limits.entries;
        self.entries = self.entries.saturating_add(1);
        if self.entries > limit {
            let what = "files";
            return Err(UnpackError::TooLarge { limit, what });
        }
        Ok(())
    }

    /// Makes the folders above an entry; none of them may be a link.
    fn make_parents(&mut self, inside: &Path, shown: &Path) -> Result<(), UnpackError> {
        let mut full = self.target.to_owned();
        for part in inside.parent().into_iter().flat_map(Path::components) {
            full.push(part);
            match full.symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                Ok(found) if found.is_symlink() => {
                    return Err(refused(shown, "leads through a link"));
                }
                Ok(_) => return Err(refused(shown, "leads through a file")),
                Err(_) => {
                    self.count_entry()?;
                    folder(&full).map_err(|source| written(&full, source))?;
                }
            }
        }
        Ok(())
    }

    fn left_out(&mut self, path: &Path, problem: &str) -> Result<bool, UnpackError> {
        if !self.options.as_found {
            return Err(refused(path, problem));
        }
        self.moved.leave_out(path.to_owned(), problem.to_owned());
        Ok(false)
    }

    fn room_for(&mut self, bytes: u64) -> Result<(), UnpackError> {
        self.moved.bytes = self.moved.bytes.saturating_add(bytes);
        let limit = self.options.limits.bytes;
        if self.moved.bytes > limit {
            let what = "bytes";
            return Err(UnpackError::TooLarge { limit, what });
        }
        Ok(())
    }

    /// A hard link, as a file of its own: the content of a file that came
    /// before, which is reached through folders alone.
    fn copy_of(&mut self, first: &Path, path: &Path, full: &Path) -> Result<bool, UnpackError> {
        let inside = clean(first).map_err(|problem| refused(path, problem))?;
        let unknown = || refused(path, "is a hard link to what is not in the archive");
        let mut first = self.target.to_owned();
        for part in &inside {
            if first.is_symlink() {
                return Err(unknown());
            }
            first.push(part);
        }
        let found = first.symlink_metadata().map_err(|_| unknown())?;
        if !found.is_file() {
            return Err(unknown());
        }
        self.room_for(found.len())?;
        let mut content = fs::File::open(&first).map_err(|source| written(&first, source))?;
        let mut file = create(path, full)?;
        io::copy(&mut content, &mut file)
            .and_then(|_| file.set_permissions(found.permissions()))
            .and_then(|()| file.set_modified(found.modified()?))
            .map_err(|source| written(full, source))?;
        Ok(true)
    }

    fn finish(&self, file: &fs::File, mode: u32, time: u64) -> io::Result<()> {
        file.set_permissions(fs::Permissions::from_mode(mode & 0o777 | 0o600))?;
        let time = UNIX_EPOCH.checked_add(Duration::from_secs(time));
        match time.filter(|_| self.options.as_found) {
            Some(time) => file.set_modified(time),
            None => Ok(()),
        }
    }
}

fn refused(path: &Path, problem: &str) -> UnpackError {
    UnpackError::Refused {
        path: path.to_owned(),
        problem: problem.to_owned(),
    }
}

/// Copies a file's content: what cannot be read is the archive's fault, what cannot be
/// written the disk's. Zeros of a file that has holes become holes.
fn copy(
    content: &mut impl Read,
    file: &mut fs::File,
    path: &Path,
    has_holes: bool,
) -> Result<u64, UnpackError> {
    let mut buffer = vec![0; 64 * 1024];
    let mut copied = 0_u64;
    loop {
        let count = match content.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(UnpackError::Read(error)),
        };
        let piece = buffer.get(..count).unwrap_or_default();
        copied += count as u64;
        if has_holes && piece.iter().all(|byte| *byte == 0) {
            file.seek(io::SeekFrom::Start(copied))
                .map_err(|source| written(path, source))?;
        } else {
            file.write_all(piece)
                .map_err(|source| written(path, source))?;
        }
    }
    if has_holes {
        file.set_len(copied)
            .map_err(|source| written(path, source))?;
    }
    Ok(copied)
}

/// A path that is not longer than a file system takes it.
fn short(path: PathBuf) -> Result<PathBuf, UnpackError> {
    let length = path.as_os_str().len();
    if length <= PATH_BYTES {
        return Ok(path);
    }
    let beginning = path.as_os_str().as_bytes().get(..64).unwrap_or_default();
    let shown = format!("{}…", String::from_utf8_lossy(beginning));
    let problem = format!("has a path of {length} bytes, more than {PATH_BYTES}");
    Err(refused(Path::new(&shown), &problem))
}

/// What a link points to.
fn link_target<R: Read>(entry: &Entry<'_, R>, path: &Path) -> Result<PathBuf, UnpackError> {
    let link = entry.link_name().map_err(UnpackError::Read)?;
    let link = link.ok_or_else(|| refused(path, "is a link to nothing"))?;
    if link.as_os_str().len() > PATH_BYTES {
        let length = link.as_os_str().len();
        let problem = format!("has a link target of {length} bytes, more than {PATH_BYTES}");
        return Err(refused(path, &problem));
    }
    Ok(link.into_owned())
}

fn written(path: &Path, source: io::Error) -> UnpackError {
    UnpackError::Write {
        path: path.to_owned(),
        source,
    }
}

/// The error for something that could not be made where nothing must be.
fn new(error: io::Error, path: &Path, full: &Path) -> UnpackError {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return refused(path, "comes twice");
    }
    written(full, error)
}

fn create(path: &Path, full: &Path) -> Result<fs::File, UnpackError> {
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(full)
        .map_err(|error| new(error, path, full))
}

fn folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o755).create(path)
}

#[cfg(test)]
mod header_tests;
#[cfg(test)]
mod tests;
