//! Packs a folder into a deterministic archive: the same files give the same
//! bytes, on any day, for any user.

mod archive;
mod cache;
mod compress;
mod entry;
mod environment;
mod error;
mod scan;
mod secrets;
mod sink;
mod walk;

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, atomic::AtomicBool},
};

use bytes::Bytes;

use archive::archive;
use cache::Cache;
use entry::Found;
pub use environment::is_environment;
pub use error::BundleError;
pub use scan::{Scan, scan};
pub use secrets::SecretFile;
use sink::Data;
pub(crate) use sink::hexadecimal;
pub use walk::DEFAULT_IGNORES;

/// How many of the largest files, and of what was left out, are named.
const EXAMPLES: usize = 10;

/// What to pack beside the rules in the folder's own ignore files.
#[derive(Debug, Clone, Default)]
pub struct PackOptions {
    /// Further patterns in .gitignore's language; they win over all others.
    pub ignore: Vec<String>,
    /// Patterns of files that are sent though they look like secrets.
    pub allow_secrets: Vec<String>,
    /// A folder in which to remember what folders were packed to: an unchanged
    /// one is not packed again before its archive is asked for.
    pub cache: Option<PathBuf>,
    /// Whether the report names all that was left out, not only the first.
    pub names_all: bool,
    /// Set it from another thread when the archive is not wanted any more: packing ends
    /// within milliseconds with [`BundleError::Stopped`], and leaves no file.
    pub stop: Arc<AtomicBool>,
}

/// How far packing has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Files packed so far.
    pub files: u64,
    /// Bytes packed so far, before compression, those of a file that is not yet packed
    /// as a whole among them.
    pub bytes: u64,
    /// Files to pack.
    pub total_files: u64,
    /// Their bytes, before compression.
    pub total_bytes: u64,
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
    /// The first of them, or all with [`PackOptions::names_all`]; folders with a `/` at
    /// the end.
    pub left_out_examples: Vec<String>,
    /// The largest files packed, largest first.
    pub largest: Vec<(PathBuf, u64)>,
}

/// A packed folder. Clones share the archive.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// The archive's sha256, in hexadecimal: its address.
    pub sha256: String,
    /// The archive's size in bytes.
    pub size: u64,
    /// What was packed.
    pub report: Report,
    contents: Arc<Contents>,
}

/// What the archive is made of, and the archive when it is made.
#[derive(Debug)]
struct Contents {
    folder: PathBuf,
    entries: Vec<Found>,
    paths: BTreeSet<PathBuf>,
    cache: Option<Cache>,
    /// Made when it is asked for, of a folder that is known to be unchanged.
    data: OnceLock<Data>,
}

impl Contents {
    fn new(folder: PathBuf, entries: Vec<Found>, cache: Option<Cache>, data: Option<Data>) -> Self {
        Self {
            folder,
            paths: entries.iter().map(|entry| entry.path.clone()).collect(),
            entries,
            cache,
            data: data.map(OnceLock::from).unwrap_or_default(),
        }
    }
}

impl Bundle {
    /// Whether the archive has been made: not so of a folder that is as it was
    /// when it was packed last.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        self.contents.data.get().is_some()
    }

    /// Makes the archive, if it has not been made. `stop` ends it as
    /// [`PackOptions::stop`] does.
    ///
    /// # Errors
    /// As [`pack`]; [`BundleError::FolderChanged`].
    pub fn make(
        &self,
        stop: &AtomicBool,
        progress: impl FnMut(Progress),
    ) -> Result<(), BundleError> {
        self.data(stop, progress).map(drop)
    }

    fn data(
        &self,
        stop: &AtomicBool,
        progress: impl FnMut(Progress),
    ) -> Result<&Data, BundleError> {
        let contents = &self.contents;
        if let Some(data) = contents.data.get() {
            return Ok(data);
        }
        let (data, _, sha256) = archive(&contents.folder, &contents.entries, stop, progress)?;
        if sha256 != self.sha256 {
            // What is remembered is wrong, whatever the reason: the next try packs anew.
            if let Some(cache) = &contents.cache {
                cache.forget();
            }
            return Err(BundleError::FolderChanged {
                path: contents.folder.clone(),
            });
        }
        Ok(contents.data.get_or_init(|| data))
    }

    fn made(&self) -> io::Result<&Data> {
        self.data(&AtomicBool::new(false), |_| {})
            .map_err(io::Error::other)
    }

    /// Reads the archive from its beginning.
    ///
    /// # Errors
    /// Its temporary file cannot be opened; or it was not made yet, and its folder
    /// has changed.
    pub fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self.made()? {
            Data::Memory(bytes) => Box::new(io::Cursor::new(bytes.clone())),
            Data::File(file) => Box::new(File::open(file.path())?),
        })
    }

    /// The whole archive.
    ///
    /// # Errors
    /// As [`Bundle::open`].
    pub fn bytes(&self) -> io::Result<Bytes> {
        match self.made()? {
            Data::Memory(bytes) => Ok(bytes.clone()),
            Data::File(file) => Ok(std::fs::read(file.path())?.into()),
        }
    }

    /// Whether a path of the folder is in the bundle.
    #[must_use]
    pub fn contains(&self, path: &Path) -> bool {
        self.contents.paths.contains(path)
    }

    /// Files that a command names, and that are in the folder, but neither in the
    /// bundle nor brought to the tasks in another way; one line each.
    #[must_use]
    pub fn warnings(&self, command: &[String], is_there: impl Fn(&Path) -> bool) -> Vec<String> {
        let mut warnings = Vec::new();
        for word in command {
            // `--config=conf/a.yaml` names a file too.
            let word = word.rsplit('=').next().unwrap_or(word);
            let path = Path::new(word.trim_start_matches("./").trim_end_matches('/'));
            if word.is_empty() || path.as_os_str().is_empty() || path.is_absolute() {
                continue;
            }
            let found = self.contents.folder.join(path).symlink_metadata().is_ok();
            let inside = !path
                .components()
                .any(|part| part == std::path::Component::ParentDir);
            if !found || !inside || self.contents.paths.contains(path) || is_there(path) {
                continue;
            }
            let environment = path.ancestors().find(|part| {
                !part.as_os_str().is_empty() && is_environment(&self.contents.folder.join(part))
            });
            if let Some(environment) = environment {
                warnings.push(format!(
                    "the command names {word:?}, but {} is a virtual environment of this machine and is not sent: install the packages in the image",
                    environment.display()
                ));
            } else {
                warnings.push(format!(
                    "the command names {word:?}, which is left out of the bundle by an ignore rule; add `!{}` to .longshoreignore to send it",
                    path.display()
                ));
            }
        }
        warnings
    }
}

/// Packs a folder. `progress` is called after each file, and within large ones.
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
    scan(folder, options)?.pack(progress)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod unchanged_tests;
