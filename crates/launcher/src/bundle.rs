//! Packs a folder into a deterministic archive: the same files give the same
//! bytes, on any day, for any user.

mod walk;

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use flate2::{Compression, GzBuilder, write::GzEncoder};
use longshore_archive::{FileError, append_file, is_confined};
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

pub use walk::DEFAULT_IGNORES;
use walk::{Found, Kind};

/// The time that every entry carries, in seconds since 1970: the first second
/// of 1980, because zip, and so Python's wheels, know none before.
const TIME: u64 = 315_532_800;
/// Higher levels cost much time and save little on code.
const LEVEL: u32 = 6;
/// Archives up to this many bytes stay in memory.
const IN_MEMORY: usize = 4 * 1024 * 1024;
/// How many of the largest files, and of what was left out, are named.
const EXAMPLES: usize = 10;

/// Why a folder cannot be packed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The folder is none.
    #[error("cannot pack {}: {problem}", path.display())]
    NoFolder {
        /// The path given.
        path: PathBuf,
        /// `it does not exist`, `it is a file, not a folder`.
        problem: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {source}; leave it out with .longshoreignore if it is not needed", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file changed while it was read.
    #[error("{} changed while it was packed; try again when nothing writes to it, or leave it out with .longshoreignore", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A symbolic link that leaves the folder.
    #[error("the link {} points out of the folder, to {}: it would be broken in the pod; copy the target in, or leave the link out with .longshoreignore", path.display(), target.display())]
    Link {
        /// The link, within the folder.
        path: PathBuf,
        /// Where it points.
        target: PathBuf,
    },
    /// An ignore pattern that cannot be read.
    #[error("cannot understand the ignore patterns of {}: {problem}", path.display())]
    Pattern {
        /// The file, or what stands for it.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The archive cannot be written.
    #[error("cannot write the bundle: {0}; is there room in the temporary folder?")]
    Write(#[source] io::Error),
}

/// What to pack beside the rules in the folder's own ignore files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackOptions {
    /// Further patterns in .gitignore's language; they win over all others.
    pub ignore: Vec<String>,
}

/// How far packing has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Files packed so far.
    pub files: u64,
    /// Their bytes, before compression.
    pub bytes: u64,
}

/// What was packed and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Files and links packed.
    pub files: u64,
    /// Their bytes, before compression.
    pub bytes: u64,
    /// Files and whole folders left out.
    pub left_out: u64,
    /// The first of them, folders with a `/` at the end.
    pub left_out_examples: Vec<String>,
    /// The largest files packed, largest first.
    pub largest: Vec<(PathBuf, u64)>,
}

/// A packed folder.
#[derive(Debug)]
pub struct Bundle {
    /// The archive's sha256, in hexadecimal: its address.
    pub sha256: String,
    /// The archive's size in bytes.
    pub size: u64,
    /// What was packed.
    pub report: Report,
    folder: PathBuf,
    packed: std::collections::BTreeSet<PathBuf>,
    data: Data,
}

#[derive(Debug)]
enum Data {
    Memory(Bytes),
    // Removes itself when the bundle goes.
    File(tempfile::NamedTempFile),
}

impl Bundle {
    /// Reads the archive from its beginning.
    ///
    /// # Errors
    /// Its temporary file cannot be opened.
    pub fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match &self.data {
            Data::Memory(bytes) => Box::new(io::Cursor::new(bytes.clone())),
            Data::File(file) => Box::new(File::open(file.path())?),
        })
    }

    /// The whole archive.
    ///
    /// # Errors
    /// Its temporary file cannot be read.
    pub fn bytes(&self) -> io::Result<Bytes> {
        match &self.data {
            Data::Memory(bytes) => Ok(bytes.clone()),
            Data::File(file) => Ok(std::fs::read(file.path())?.into()),
        }
    }

    /// Files that a command names, and that are in the folder, but not in the
    /// bundle; one line each.
    #[must_use]
    pub fn warnings(&self, command: &[String]) -> Vec<String> {
        let mut warnings = Vec::new();
        for word in command {
            // `--config=conf/a.yaml` names a file too.
            let word = word.rsplit('=').next().unwrap_or(word);
            let path = Path::new(word.trim_start_matches("./").trim_end_matches('/'));
            if word.is_empty() || path.as_os_str().is_empty() || path.is_absolute() {
                continue;
            }
            let found = self.folder.join(path).symlink_metadata().is_ok();
            let inside = !path
                .components()
                .any(|part| part == std::path::Component::ParentDir);
            if found && inside && !self.packed.contains(path) {
                warnings.push(format!(
                    "the command names {word:?}, which is left out of the bundle by an ignore rule; add `!{}` to .longshoreignore to send it",
                    path.display()
                ));
            }
        }
        warnings
    }
}

/// Packs a folder. `progress` is called after each file.
///
/// Left out are: what .gitignore files say, what .longshoreignore files say
/// (these win), [`DEFAULT_IGNORES`], folders marked as caches by a
/// `CACHEDIR.TAG`, and what is neither file, folder nor link.
///
/// # Errors
/// Names the path, what is wrong with it, and what to do.
pub fn pack(
    folder: &Path,
    options: &PackOptions,
    mut progress: impl FnMut(Progress),
) -> Result<Bundle, BundleError> {
    let no_folder = |problem: String| BundleError::NoFolder {
        path: folder.to_owned(),
        problem,
    };
    match folder.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(no_folder("it does not exist; give a folder of code".into()));
        }
        Err(error) => return Err(no_folder(error.to_string())),
        Ok(found) if !found.is_dir() => {
            return Err(no_folder(
                "it is a file, not a folder; give the folder it is in".into(),
            ));
        }
        Ok(_) => {}
    }
    let found = walk::walk(folder, &options.ignore)?;
    let mut report = Report {
        left_out: found.left_out,
        left_out_examples: found.examples,
        ..Report::default()
    };
    let compressor = GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Sink::default(), Compression::new(LEVEL));
    let mut archive = tar::Builder::new(compressor);
    for entry in &found.entries {
        append(&mut archive, folder, entry)?;
        if entry.kind != Kind::Folder {
            report.files += 1;
            report.bytes += entry.size;
            progress(Progress {
                files: report.files,
                bytes: report.bytes,
            });
        }
    }
    report.largest = largest(&found.entries);
    let sink = archive
        .into_inner()
        .and_then(GzEncoder::finish)
        .map_err(BundleError::Write)?;
    let (data, size, sha256) = sink.finish().map_err(BundleError::Write)?;
    let packed = found.entries.into_iter().map(|entry| entry.path).collect();
    Ok(Bundle {
        sha256,
        size,
        report,
        folder: folder.to_owned(),
        packed,
        data,
    })
}

fn largest(entries: &[Found]) -> Vec<(PathBuf, u64)> {
    let mut files: Vec<_> = entries
        .iter()
        .filter(|entry| entry.kind == Kind::File)
        .collect();
    files.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.path.cmp(&b.path)));
    files
        .into_iter()
        .take(EXAMPLES)
        .map(|entry| (entry.path.clone(), entry.size))
        .collect()
}

fn append<W: Write>(
    archive: &mut tar::Builder<W>,
    folder: &Path,
    entry: &Found,
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

/// Takes the archive's bytes: hashes them, and keeps them in memory until
/// they are many, then in a temporary file.
#[derive(Default)]
struct Sink {
    hash: Sha256,
    memory: Vec<u8>,
    file: Option<tempfile::NamedTempFile>,
    size: u64,
}

impl Sink {
    fn finish(self) -> io::Result<(Data, u64, String)> {
        let data = match self.file {
            Some(mut file) => {
                file.write_all(&self.memory)?;
                file.flush()?;
                Data::File(file)
            }
            None => Data::Memory(self.memory.into()),
        };
        Ok((data, self.size, hexadecimal(&self.hash.finalize())))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        self.memory.extend_from_slice(bytes);
        if self.memory.len() > IN_MEMORY {
            if self.file.is_none() {
                self.file = Some(tempfile::NamedTempFile::new()?);
            }
            if let Some(file) = &mut self.file {
                file.write_all(&self.memory)?;
            }
            self.memory.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
#[path = "bundle/tests.rs"]
mod tests;
