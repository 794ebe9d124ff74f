//! Packs a folder into a deterministic archive: the same files give the same
//! bytes, on any day, for any user.

mod cache;
mod compress;
mod secrets;
mod sink;
mod walk;

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::OnceLock,
    time::SystemTime,
};

use bytes::Bytes;
use longshore_archive::{FileError, append_file, is_confined};
use tar::{EntryType, Header};

use cache::Cache;
use compress::ParallelGzip;
pub use secrets::SecretFile;
pub(crate) use sink::hexadecimal;
use sink::{Data, Sink};
pub use walk::DEFAULT_IGNORES;
use walk::{Found, Kind, Walked};

/// The time that every entry carries, in seconds since 1970: the first second
/// of 1980, because zip, and so Python's wheels, know none before.
const TIME: u64 = 315_532_800;
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
    /// Files that should not leave home.
    #[error("the folder holds what looks like secrets: {}; leave them out with .longshoreignore and give them to the tasks as a Secret, or, if they may be sent, name them in `allow_secrets`", listed(.0))]
    Secrets(Vec<SecretFile>),
    /// The archive cannot be written.
    #[error("cannot write the bundle: {0}; is there room in the temporary folder?")]
    Write(#[source] io::Error),
}

/// So many secrets are named.
const NAMED: usize = 5;

fn listed(secrets: &[SecretFile]) -> String {
    let named = secrets.iter().take(NAMED);
    let named = named.map(|secret| format!("{} ({})", secret.path.display(), secret.what));
    let mut text = named.collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = secrets.len().checked_sub(NAMED) {
        text = format!("{text}, and {more} more");
    }
    text
}

/// What to pack beside the rules in the folder's own ignore files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackOptions {
    /// Further patterns in .gitignore's language; they win over all others.
    pub ignore: Vec<String>,
    /// Patterns of files that are sent though they look like secrets.
    pub allow_secrets: Vec<String>,
    /// A folder in which to remember what folders were packed to: an unchanged
    /// one is not packed again before its archive is asked for.
    pub cache: Option<PathBuf>,
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
    entries: Vec<Found>,
    packed: BTreeSet<PathBuf>,
    /// Made when it is asked for, of a folder that is known to be unchanged.
    data: OnceLock<Data>,
}

impl Bundle {
    /// Whether the archive has been made: not so of a folder that is as it was
    /// when it was packed last.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        self.data.get().is_some()
    }

    fn data(&self) -> io::Result<&Data> {
        if let Some(data) = self.data.get() {
            return Ok(data);
        }
        let packed = archive(&self.folder, &self.entries, |_| {});
        let (data, _, sha256) = packed.map_err(io::Error::other)?;
        if sha256 != self.sha256 {
            return Err(io::Error::other(
                "the folder changed while it was sent; try again when nothing writes to it",
            ));
        }
        Ok(self.data.get_or_init(|| data))
    }

    /// Reads the archive from its beginning.
    ///
    /// # Errors
    /// Its temporary file cannot be opened; or it was not made yet, and its folder
    /// has changed.
    pub fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self.data()? {
            Data::Memory(bytes) => Box::new(io::Cursor::new(bytes.clone())),
            Data::File(file) => Box::new(File::open(file.path())?),
        })
    }

    /// The whole archive.
    ///
    /// # Errors
    /// As [`Bundle::open`].
    pub fn bytes(&self) -> io::Result<Bytes> {
        match self.data()? {
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
    progress: impl FnMut(Progress),
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
    let begun = SystemTime::now();
    let found = walk::walk(folder, &options.ignore)?;
    let allowed = walk::rules(
        Path::new(""),
        "the `allow_secrets` setting",
        &options.allow_secrets,
    )?;
    let secrets = secrets::find(folder, &found.entries, &allowed);
    if !secrets.is_empty() {
        return Err(BundleError::Secrets(secrets));
    }
    let cache = options.cache.as_deref();
    let cache = cache.map(|cache| Cache::of(cache, folder, &found));
    let known = cache.as_ref().and_then(Cache::find);
    let report = report(&found);
    let (data, size, sha256) = match known {
        Some(known) => (OnceLock::new(), known.size, known.sha256),
        None => {
            let (data, size, sha256) = archive(folder, &found.entries, progress)?;
            // A small one is packed as soon as it is looked up.
            if let (Some(cache), Data::File(_)) = (&cache, &data) {
                cache.remember(&sha256, size, begun);
            }
            (OnceLock::from(data), size, sha256)
        }
    };
    let packed = found.entries.iter().map(|entry| entry.path.clone());
    Ok(Bundle {
        sha256,
        size,
        report,
        folder: folder.to_owned(),
        packed: packed.collect(),
        entries: found.entries,
        data,
    })
}

/// What is going to be packed.
fn report(found: &Walked) -> Report {
    let files = found.entries.iter();
    let files = files.filter(|entry| entry.kind != Kind::Folder);
    Report {
        files: files.clone().count() as u64,
        bytes: files.map(|entry| entry.size).sum(),
        left_out: found.left_out,
        left_out_examples: found.examples.clone(),
        largest: largest(&found.entries),
    }
}

/// Makes the archive, its size and its sha256.
fn archive(
    folder: &Path,
    entries: &[Found],
    mut progress: impl FnMut(Progress),
) -> Result<(Data, u64, String), BundleError> {
    let compressor = ParallelGzip::new(Sink::default()).map_err(BundleError::Write)?;
    let mut archive = tar::Builder::new(compressor);
    let mut done = Progress::default();
    for entry in entries {
        append(&mut archive, folder, entry)?;
        if entry.kind != Kind::Folder {
            done.files += 1;
            done.bytes += entry.size;
            progress(done);
        }
    }
    let sink = archive.into_inner().and_then(ParallelGzip::finish);
    sink.and_then(Sink::finish).map_err(BundleError::Write)
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

#[cfg(test)]
mod tests;
