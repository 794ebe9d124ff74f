//! Packs a folder into a deterministic archive: the same files result in the same bytes at
//! any time and for any user.

mod archive;
mod attempts;
mod background;
mod cache;
mod changes;
mod compress;
mod contents;
mod entry;
mod environment;
mod error;
mod git;
mod listing;
mod mentions;
mod rules;
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
pub use attempts::pack_scanned;
pub use background::pack_in_background;
use cache::Cache;
pub use changes::{ChangeArchive, Changes, Manifest};
pub use contents::FileContents;
use entry::{Found, Kind};
pub use environment::is_environment;
pub use error::BundleError;
pub use listing::{Content, Listing};
pub use rules::DEFAULT_IGNORES;
pub use scan::{Scan, scan};
pub use secrets::SecretFile;
use sink::Data;
pub use sink::hexadecimal;

/// The number of examples of large and excluded files in a report.
const EXAMPLES: usize = 10;

/// Options for packing, in addition to the folder's ignore files.
#[derive(Debug, Clone, Default)]
pub struct PackOptions {
    /// Additional .gitignore patterns, which override all others.
    pub ignore: Vec<String>,
    /// Patterns of files to include although they look like secrets.
    pub allow_secrets: Vec<String>,
    /// A cache folder for the results of packing. An unchanged folder is not packed again
    /// until its archive is needed.
    pub cache: Option<PathBuf>,
    /// True if the report lists all excluded files instead of only the first ones.
    pub names_all: bool,
    /// A flag to stop packing from another thread. Packing then ends within milliseconds with
    /// [`BundleError::Stopped`] and leaves no file.
    pub stop: Arc<AtomicBool>,
}

/// The progress of packing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Files packed so far.
    pub files: u64,
    /// Bytes packed so far, before compression, including the bytes of a partially packed file.
    pub bytes: u64,
    /// Files to pack.
    pub total_files: u64,
    /// The size of all files to pack in bytes, before compression.
    pub total_bytes: u64,
}

/// The packed and the excluded files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Files and links packed.
    pub files: u64,
    /// The size of the packed files in bytes, before compression.
    pub bytes: u64,
    /// The number of excluded files and folders.
    pub left_out: u64,
    /// The first excluded paths, or all with [`PackOptions::names_all`]; folders end with
    /// `/`.
    pub left_out_examples: Vec<String>,
    /// The first of the excluded folders that are virtual environments.
    pub environments: Vec<String>,
    /// Problems that may cause other files to be packed than git lists.
    pub warnings: Vec<String>,
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
    /// The packed files.
    pub report: Report,
    contents: Arc<Contents>,
}

/// The sources of the archive, and the archive once it exists.
#[derive(Debug)]
struct Contents {
    folder: PathBuf,
    entries: Vec<Found>,
    paths: BTreeSet<PathBuf>,
    cache: Option<Cache>,
    /// The archive. Created on demand if the folder is unchanged.
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
    /// Returns true if the archive exists already. It does not exist for a folder that is unchanged
    /// since it was last packed.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        self.contents.data.get().is_some()
    }

    /// Creates the archive unless it exists. `stop` works like [`PackOptions::stop`].
    ///
    /// # Errors
    /// The same as [`pack`]; [`BundleError::FolderChanged`].
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
            // The cache entry is wrong: the next attempt packs the folder again.
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

    /// Opens the archive for reading.
    ///
    /// # Errors
    /// The temporary file cannot be opened, or the archive does not exist yet and its folder
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
    /// The same as [`Bundle::open`].
    pub fn bytes(&self) -> io::Result<Bytes> {
        match self.made()? {
            Data::Memory(bytes) => Ok(bytes.clone()),
            Data::File(file) => Ok(std::fs::read(file.path())?.into()),
        }
    }

    /// Returns true if a path of the folder is in the bundle.
    #[must_use]
    pub fn contains(&self, path: &Path) -> bool {
        self.contents.paths.contains(path)
    }

    /// The packed folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.contents.folder
    }

    /// Returns true if the bundle contains a file or a link at a path or above it, or a folder at
    /// the path that is not empty.
    #[must_use]
    pub fn has_files_at(&self, path: &Path) -> bool {
        let entries = &self.contents.entries;
        entries.iter().any(|entry| match entry.kind {
            Kind::Folder => entry.path != path && entry.path.starts_with(path),
            Kind::File | Kind::Link => {
                entry.path.starts_with(path) || path.starts_with(&entry.path)
            }
        })
    }

    /// Warnings for each file in the folder that the command names, but that is neither in the
    /// bundle nor available to the tasks in another way.
    #[must_use]
    pub fn warnings(&self, command: &[String], is_there: impl Fn(&Path) -> bool) -> Vec<String> {
        let mut warnings = Vec::new();
        for word in command {
            // `--config=conf/a.yaml` also names a file.
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
            let is_part = |part: &&Path| !part.as_os_str().is_empty();
            let environment = path
                .ancestors()
                .filter(is_part)
                .find(|part| is_environment(&self.contents.folder.join(part)));
            if let Some(environment) = environment {
                warnings.push(format!(
                    "the command names {word:?}, but {} is a virtual environment of this machine and is not sent: install the packages in the image",
                    environment.display()
                ));
            } else {
                // A pattern has no effect below a folder that is excluded.
                let ancestors = path.ancestors().filter(is_part);
                let excluded = ancestors.filter(|part| !self.contents.paths.contains(*part));
                let excluded = excluded.last().unwrap_or(path);
                let slash = if excluded == path { "" } else { "/" };
                warnings.push(format!(
                    "the command names {word:?}, which an ignore rule excludes from the bundle; add `!{}{slash}` to .longshoreignore to include it",
                    excluded.display()
                ));
            }
        }
        warnings
    }
}

/// Packs a folder. Calls `progress` after each file, and within large files.
///
/// Excludes the files that .gitignore and .longshoreignore files match (.longshoreignore takes
/// precedence), [`DEFAULT_IGNORES`], folders marked as caches by a `CACHEDIR.TAG`, and everything
/// that is not a file, folder or link. If a file changes while it is read, the folder is packed
/// again, up to three times.
///
/// # Errors
/// The error contains the path, the problem and the remedy.
pub fn pack(
    folder: &Path,
    options: &PackOptions,
    progress: impl FnMut(Progress),
) -> Result<Bundle, BundleError> {
    pack_scanned(folder, options, |_| {}, progress)
}

#[cfg(test)]
mod tests;
