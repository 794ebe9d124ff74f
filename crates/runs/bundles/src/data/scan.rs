//! The files of a folder of this machine, with their sha256.

use std::{
    collections::HashMap,
    fmt,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::OFlags;

use super::{
    DataError, DataProgress, Manifest, Step,
    copy::{CopyError, hash},
    index::{self, Index, MOMENT},
    manifest::DataFile,
    parallel,
    progress::{Counter, Listener},
    walk::{FoundFile, Stamp, canonical, walk},
};

/// Options of a scan.
#[derive(Clone)]
pub struct ScanOptions {
    /// A folder for the sha256 of files. With it, unchanged files are not read again.
    pub cache: Option<PathBuf>,
    /// Called while files are read.
    pub progress: Arc<dyn Fn(DataProgress) + Send + Sync>,
    /// Set it to stop the scan.
    pub stop: Arc<AtomicBool>,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            cache: None,
            progress: Arc::new(|_| {}),
            stop: Arc::default(),
        }
    }
}

impl fmt::Debug for ScanOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanOptions")
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// The files of a folder at the time of the scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The files.
    pub manifest: Manifest,
    /// The sha256 of the manifest's text: the identity of the data.
    pub sha256: String,
    /// The number of files that had to be read.
    pub read: u64,
    /// The number of entries that .longshoreignore excludes.
    pub excluded: u64,
    /// The folder.
    pub folder: PathBuf,
    /// For each content, a file that has it.
    pub(super) sources: HashMap<String, SourceFile>,
}

/// A file with a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    stamp: Stamp,
}

/// Finds the files of a folder and their sha256.
///
/// # Errors
/// The error contains the entry that cannot be data, and the reason.
pub fn scan(folder: &Path, options: &ScanOptions) -> Result<Snapshot, DataError> {
    let folder = canonical(folder)?;
    let walked = walk(&folder, &options.stop)?;
    let place = options.cache.as_deref();
    let place = place.map(|cache| index::path(cache, &folder));
    let mut index = match &place {
        Some(place) => Index::read(place, &folder),
        None => Index::default(),
    };
    let known = std::mem::take(&mut index.files);
    let is_known = |file: &&FoundFile| {
        let known = known.get(&file.path);
        known.is_some_and(|(stamp, _)| *stamp == file.stamp)
    };
    let (old, new): (Vec<_>, Vec<_>) = walked.files.iter().partition(is_known);
    let mut hashes: HashMap<&str, String> = old
        .iter()
        .filter_map(|file| Some((file.path.as_str(), known.get(&file.path)?.1.clone())))
        .collect();
    let found = hash_all(&folder, &new, options);
    // The index is also written after an error, so that the next scan continues.
    let (found, result) = found;
    for (path, sha256) in found {
        hashes.insert(path, sha256);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| i128::try_from(now.as_nanos()).unwrap_or(i128::MAX));
    if let Some(place) = place.filter(|_| !new.is_empty() || known.len() != walked.files.len()) {
        for file in &walked.files {
            let latest = file.stamp.modified.max(file.stamp.changed);
            if let Some(sha256) = hashes.get(file.path.as_str())
                && (latest < now - MOMENT || is_known(&file))
            {
                let known = (file.stamp, sha256.clone());
                index.files.insert(file.path.clone(), known);
            }
        }
        index.write(&place);
    }
    result?;
    let read = new.len() as u64;
    let (mut files, mut sources) = (Vec::new(), HashMap::new());
    for file in &walked.files {
        let Some(sha256) = hashes.get(file.path.as_str()) else {
            continue;
        };
        files.push(DataFile {
            path: file.path.clone(),
            size: file.stamp.size,
            content: sha256.clone(),
            executable: file.executable,
        });
        let source = SourceFile {
            path: folder.join(&file.path),
            stamp: file.stamp,
        };
        sources.entry(sha256.clone()).or_insert(source);
    }
    let manifest = Manifest::new(files, walked.folders, walked.links);
    Ok(Snapshot {
        sha256: Manifest::sha256(&manifest.to_text()),
        manifest,
        read,
        excluded: walked.excluded,
        folder,
        sources,
    })
}

/// The sha256 of files, as far as they could be determined.
fn hash_all<'a>(
    folder: &Path,
    files: &[&'a FoundFile],
    options: &ScanOptions,
) -> (Vec<(&'a str, String)>, Result<(), DataError>) {
    let bytes = files.iter().map(|file| file.stamp.size);
    let total = bytes.fold(0, u64::saturating_add);
    let listener: &Listener = &options.progress;
    let amount = (files.len() as u64, total);
    let counter = Counter::new(Step::Hashing, amount, listener.as_ref(), &options.stop);
    let found = Mutex::new(Vec::with_capacity(files.len()));
    let result = parallel::each(files, |file| {
        let source = SourceFile {
            path: folder.join(&file.path),
            stamp: file.stamp,
        };
        let mut opened = source.open()?;
        let hashed = hash(&mut opened, &mut io::sink(), file.stamp.size, &counter);
        let (sha256, _) = hashed.map_err(|error| source.failed(error))?;
        source.check(&opened)?;
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.push((file.path.as_str(), sha256));
        Ok(())
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    (found, result)
}

impl SourceFile {
    /// Opens the file, if it is unchanged since the scan.
    pub(super) fn open(&self) -> Result<File, DataError> {
        // Does not follow a link, nor block on a pipe, that has replaced the file.
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&self.path);
        let file = opened.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => self.changed(),
            _ => self.unreadable(source),
        })?;
        self.check(&file)?;
        Ok(file)
    }

    /// Checks that an open file is unchanged since the scan.
    pub(super) fn check(&self, file: &File) -> Result<(), DataError> {
        let found = file.metadata().map_err(|source| self.unreadable(source))?;
        match found.is_file() && Stamp::of(&found) == self.stamp {
            true => Ok(()),
            false => Err(self.changed()),
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.stamp.size
    }

    pub(super) fn failed(&self, error: CopyError) -> DataError {
        match error {
            CopyError::Read(source) | CopyError::Write(source) => self.unreadable(source),
            CopyError::Stopped => DataError::Stopped,
        }
    }

    fn unreadable(&self, source: io::Error) -> DataError {
        DataError::Read {
            path: self.path.clone(),
            source,
        }
    }

    pub(super) fn changed(&self) -> DataError {
        DataError::Changed {
            path: self.path.clone(),
        }
    }
}
