//! Unpacks archives that may be hostile.

mod headers;

use std::{
    collections::HashSet,
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
    Transferred,
    path::{clean, is_confined},
};
use headers::{Bounded, PATH_BYTES, check_records};

pub use headers::ENTRY_HEADER_BYTES;

/// The limits for unpacking an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum total size of all files in bytes.
    pub bytes: u64,
    /// The maximum number of files, folders and links, including folders that appear only
    /// in the paths of other entries.
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

/// The options for unpacking an archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unpack {
    /// The limits.
    pub limits: Limits,
    /// Accepts archives of arbitrary folders, whose writer does not know these rules. Links out of
    /// the tree, devices and pipes are skipped instead of rejected, hard links become separate
    /// files, and times are preserved.
    pub as_found: bool,
}

/// The error of [`unpack`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// The archive has an entry that is not allowed.
    #[error("the archive is refused: {} {problem}", path.display())]
    Refused {
        /// The entry's path, as in the archive.
        path: PathBuf,
        /// The problem with the entry.
        problem: String,
    },
    /// The archive exceeds the limits.
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
        /// The reason.
        source: io::Error,
    },
}

/// Unpacks an uncompressed archive into an existing folder. Calls `progress` after each
/// file.
///
/// The archive is rejected if it has absolute paths, `..`, paths through links, links out
/// of the tree, hard links, devices, pipes or duplicate entries, or if it exceeds the
/// limits. The setuid, setgid and sticky bits are removed. The headers of an entry may
/// have [`ENTRY_HEADER_BYTES`]; a path and the target of a link may have 4096 bytes.
/// Sparse files must have GNU's format; their holes are preserved.
///
/// # Errors
/// The error names the entry and the problem. The files that were already written remain,
/// so the caller must delete the folder.
pub fn unpack(
    archive: impl Read,
    target: &Path,
    options: &Unpack,
    mut progress: impl FnMut(&Transferred),
) -> Result<Transferred, UnpackError> {
    let limits = options.limits;
    // Never reads beyond the limit. The slack is for headers and padding.
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
        transferred: Transferred::default(),
        entries: 0,
        folders: HashSet::new(),
    };
    let mut entries = archive.entries().map_err(UnpackError::Read)?;
    loop {
        bound.begin();
        let Some(entry) = entries.next() else {
            return Ok(unpacking.transferred);
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
            unpacking.transferred.files += 1;
            progress(&unpacking.transferred);
        }
        // Skips the rest of the content, so that it is not read as the next header.
        io::copy(&mut entry, &mut io::sink()).map_err(UnpackError::Read)?;
    }
}

fn headers_too_large(path: &Path) -> UnpackError {
    let problem = format!(
        "has headers of more than {ENTRY_HEADER_BYTES} bytes (names, PAX records, sparse map)"
    );
    refused(path, &problem)
}

/// The maximum number of folders to remember. Without them, each entry of a deep folder would
/// require a system call for each folder in its path.
const MOST_FOLDERS: usize = 4096;

struct Unpacking<'a> {
    target: &'a Path,
    options: &'a Unpack,
    transferred: Transferred,
    /// The number of entries in the archive, and of folders created for their paths.
    entries: u64,
    /// Folders that exist, relative to the target. Only this process changes the target, so they
    /// remain folders.
    folders: HashSet<PathBuf>,
}

impl Unpacking<'_> {
    /// Unpacks an entry. Returns true if it created a file or a link.
    fn entry<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> Result<bool, UnpackError> {
        let path = entry.path().map_err(UnpackError::Read)?.into_owned();
        let path = check_length(path)?;
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
        self.create_parents(&inside, &path)?;
        match kind {
            EntryType::Directory => match full.symlink_metadata() {
                Ok(found) if found.is_dir() => Ok(false),
                Ok(_) => Err(refused(&path, "comes twice, as a file and as a folder")),
                Err(_) => create_folder(&full)
                    .map(|()| false)
                    .map_err(|source| write_error(&full, source)),
            },
            EntryType::Symlink => {
                let link = link_target(entry, &path)?;
                if !is_confined(&inside, &link) {
                    let problem = format!("is a link out of the folder, to {}", link.display());
                    return self.left_out(&path, &problem);
                }
                symlink(&link, &full).map_err(|error| create_error(error, &path, &full))?;
                Ok(true)
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                self.count_bytes(entry.size())?;
                let mode = entry.header().mode().map_err(UnpackError::Read)?;
                let mut file = create(&path, &full)?;
                let has_holes = kind == EntryType::GNUSparse;
                let copied = copy(entry, &mut file, &full, has_holes)?;
                if copied != entry.size() {
                    return Err(refused(&path, "is cut off"));
                }
                let time = entry.header().mtime().unwrap_or(0);
                self.finish(&file, mode, time)
                    .map_err(|source| write_error(&full, source))?;
                Ok(true)
            }
            EntryType::Link if self.options.as_found => {
                let first = link_target(entry, &path)?;
                self.copy_hard_link(&first, &path, &full)
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

    /// Creates the parent folders of an entry. None of them may be a link.
    fn create_parents(&mut self, inside: &Path, shown: &Path) -> Result<(), UnpackError> {
        let Some(parent) = inside.parent() else {
            return Ok(());
        };
        let is_known = |folder: &&Path| self.folders.contains(*folder);
        let known = parent.ancestors().find(is_known).unwrap_or(Path::new(""));
        let unknown = parent.strip_prefix(known).unwrap_or(parent).to_owned();
        let mut folder = known.to_owned();
        for part in unknown.components() {
            folder.push(part);
            let full = self.target.join(&folder);
            match full.symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                Ok(found) if found.is_symlink() => {
                    return Err(refused(shown, "leads through a link"));
                }
                Ok(_) => return Err(refused(shown, "leads through a file")),
                Err(_) => {
                    self.count_entry()?;
                    create_folder(&full).map_err(|source| write_error(&full, source))?;
                }
            }
            if self.folders.len() >= MOST_FOLDERS {
                self.folders.clear();
            }
            self.folders.insert(folder.clone());
        }
        Ok(())
    }

    fn left_out(&mut self, path: &Path, problem: &str) -> Result<bool, UnpackError> {
        if !self.options.as_found {
            return Err(refused(path, problem));
        }
        self.transferred
            .leave_out(path.to_owned(), problem.to_owned());
        Ok(false)
    }

    fn count_bytes(&mut self, bytes: u64) -> Result<(), UnpackError> {
        self.transferred.bytes = self.transferred.bytes.saturating_add(bytes);
        let limit = self.options.limits.bytes;
        if self.transferred.bytes > limit {
            let what = "bytes";
            return Err(UnpackError::TooLarge { limit, what });
        }
        Ok(())
    }

    /// Unpacks a hard link as a separate file, with the content of an earlier file. The path
    /// of that file must not contain links.
    fn copy_hard_link(
        &mut self,
        first: &Path,
        path: &Path,
        full: &Path,
    ) -> Result<bool, UnpackError> {
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
        self.count_bytes(found.len())?;
        let mut content = fs::File::open(&first).map_err(|source| write_error(&first, source))?;
        let mut file = create(path, full)?;
        io::copy(&mut content, &mut file)
            .and_then(|_| file.set_permissions(found.permissions()))
            .and_then(|()| file.set_modified(found.modified()?))
            .map_err(|source| write_error(full, source))?;
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

/// Copies a file's content. Distinguishes errors of the archive from errors of the target
/// file. With `has_holes`, blocks of zeros become holes.
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
                .map_err(|source| write_error(path, source))?;
        } else {
            file.write_all(piece)
                .map_err(|source| write_error(path, source))?;
        }
    }
    if has_holes {
        file.set_len(copied)
            .map_err(|source| write_error(path, source))?;
    }
    Ok(copied)
}

/// Rejects a path that is longer than Linux allows.
fn check_length(path: PathBuf) -> Result<PathBuf, UnpackError> {
    let length = path.as_os_str().len();
    if length <= PATH_BYTES {
        return Ok(path);
    }
    let beginning = path.as_os_str().as_bytes().get(..64).unwrap_or_default();
    let shown = format!("{}…", String::from_utf8_lossy(beginning));
    let problem = format!("has a path of {length} bytes, more than {PATH_BYTES}");
    Err(refused(Path::new(&shown), &problem))
}

/// The target of a link.
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

fn write_error(path: &Path, source: io::Error) -> UnpackError {
    UnpackError::Write {
        path: path.to_owned(),
        source,
    }
}

/// The error for a file or link that could not be created. The path must not exist.
fn create_error(error: io::Error, path: &Path, full: &Path) -> UnpackError {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return refused(path, "comes twice");
    }
    write_error(full, error)
}

fn create(path: &Path, full: &Path) -> Result<fs::File, UnpackError> {
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(full)
        .map_err(|error| create_error(error, path, full))
}

fn create_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o755).create(path)
}

#[cfg(test)]
mod tests;
