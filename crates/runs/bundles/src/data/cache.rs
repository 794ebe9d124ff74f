//! A cache of data: a folder of this machine, or a volume in a pod.
//!
//! - `files/ab/CONTENT`: the contents, each stored once, without write permission. `CONTENT.x` is
//!   an executable copy.
//! - `trees/SHA256`: the folder of a manifest. Its files are hard links to the contents. Tasks
//!   see it through a read-only mount, so that they cannot change contents that others use.
//! - `manifests/SHA256.json`: the manifest of a complete folder. Its modification time is the
//!   last use.
//! - `lock`: a shared lock of processes that use the cache, or an exclusive lock of a process that
//!   removes data. `locks/SHA256`: an exclusive lock of the process that places this folder.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use longshore_files::remove_tree;

use super::{
    DataError, DataFile, DataProgress, Manifest, Snapshot, Step,
    check::is_sha256,
    copy::{CopyError, copy},
    parallel,
    progress::Counter,
    tree,
};

/// The prefix of incomplete files and folders.
pub(super) const UNFINISHED: &str = ".tmp";
/// The modification time of all contents, in seconds: 2000-01-01. Another time means that a program
/// has changed the file.
const MODIFIED: u64 = 946_684_800;
/// The fraction of the disk that data leaves free: one in 50, at most [`LARGEST_RESERVE`].
const RESERVE: u64 = 50;
/// The maximum number of bytes that data leaves free on a large disk: 1 GiB.
const LARGEST_RESERVE: u64 = 1 << 30;

/// A cache of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataCache {
    pub(super) root: PathBuf,
}

/// Placed data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The folder.
    pub path: PathBuf,
    /// The number of bytes that the cache lacked.
    pub added: u64,
}

/// Data in a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptData {
    /// The sha256 of the manifest.
    pub sha256: String,
    /// The number of files.
    pub files: u64,
    /// The size of the files in bytes. Other data may have the same contents.
    pub bytes: u64,
    /// The time of the last use.
    pub used: SystemTime,
}

impl DataCache {
    /// Creates the cache in this folder, which does not have to exist.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder of the cache.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a manifest.
    #[must_use]
    pub fn tree(&self, sha256: &str) -> PathBuf {
        self.root.join("trees").join(sha256)
    }

    pub(super) fn manifest(&self, sha256: &str) -> PathBuf {
        self.root.join("manifests").join(format!("{sha256}.json"))
    }

    pub(super) fn files(&self) -> PathBuf {
        self.root.join("files")
    }

    /// The file of a content.
    pub(super) fn content(&self, content: &str, executable: bool) -> PathBuf {
        // The last digits, because identities of objects have a common start.
        let end = content.get(content.len().saturating_sub(2)..);
        let name = match executable {
            true => format!("{content}.x"),
            false => content.to_owned(),
        };
        self.files().join(end.unwrap_or_default()).join(name)
    }

    /// Places the folder of a snapshot. Copies the contents that the cache lacks.
    ///
    /// # Errors
    /// [`DataError`] contains the file and the failed operation. Nothing incomplete is used.
    pub fn place_snapshot(
        &self,
        snapshot: &Snapshot,
        progress: &(dyn Fn(DataProgress) + Send + Sync),
        stop: &AtomicBool,
    ) -> Result<Placed, DataError> {
        let usage = self.lock()?;
        let (manifest, sha256) = (&snapshot.manifest, &snapshot.sha256);
        let placing = self.lock_tree(sha256)?;
        let (missing, bytes) = self.missing(manifest);
        if missing.is_empty() && self.is_placed(manifest, sha256) {
            return self.used(sha256, bytes);
        }
        self.check_space(bytes)?;
        let amount = (missing.len() as u64, bytes);
        let counter = Counter::new(Step::Copying, amount, progress, stop);
        parallel::each(&missing, |file| {
            let source = snapshot.sources.get(&file.content);
            let source = source.ok_or_else(|| DataError::NoUrl {
                path: file.path.clone(),
            })?;
            let mut from = source.open()?;
            let mut to = self.new_content()?;
            let copied = copy(&mut from, to.as_file_mut(), source.size(), &counter);
            let (found, _) = copied.map_err(|error| match error {
                CopyError::Write(error) => self.not_written(to.path(), bytes, error),
                error => source.failed(error),
            })?;
            if found != file.content {
                return Err(source.changed());
            }
            self.keep(to, file)
        })?;
        self.place(manifest, sha256)?;
        let placed = self.used(sha256, bytes);
        drop((placing, usage));
        placed
    }

    /// Locks the cache against removals, until the file is closed.
    pub(super) fn lock(&self) -> Result<Option<File>, DataError> {
        for folder in ["files", "trees", "manifests", "locks"] {
            let path = self.root.join(folder);
            fs::create_dir_all(&path).map_err(DataError::cache("create", &path))?;
        }
        let file = self.lock_file("lock")?;
        shared(&file).map_err(DataError::cache("lock", &self.root))
    }

    /// Waits until no other process places the same folder.
    pub(super) fn lock_tree(&self, sha256: &str) -> Result<Option<File>, DataError> {
        let file = self.lock_file(&format!("locks/{sha256}"))?;
        let locked = rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive);
        supported(file, locked).map_err(DataError::cache("lock", &self.root))
    }

    pub(super) fn lock_file(&self, name: &str) -> Result<File, DataError> {
        let path = self.root.join(name);
        let mut options = OpenOptions::new();
        let opened = options.create(true).write(true).truncate(false).open(&path);
        opened.map_err(DataError::cache("open", &path))
    }

    /// The files with contents that the cache lacks, each content once, and their size.
    pub(super) fn missing<'a>(&self, manifest: &'a Manifest) -> (Vec<&'a DataFile>, u64) {
        let contents: BTreeMap<(&str, bool), &DataFile> = manifest
            .files
            .iter()
            .map(|file| ((file.content.as_str(), file.executable), file))
            .collect();
        let files = contents.into_values();
        let missing: Vec<&DataFile> = files.filter(|file| !self.has(file)).collect();
        let sizes = missing.iter().map(|file| file.size);
        let bytes = sizes.fold(0, u64::saturating_add);
        (missing, bytes)
    }

    /// Returns true if the cache has the unchanged content of a file.
    fn has(&self, file: &DataFile) -> bool {
        let path = self.content(&file.content, file.executable);
        fs::symlink_metadata(path).is_ok_and(|found| is_unchanged(&found, file))
    }

    /// Checks that the disk has space for this many bytes.
    pub(super) fn check_space(&self, bytes: u64) -> Result<(), DataError> {
        let Ok(disk) = rustix::fs::statvfs(&self.root) else {
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let size = disk.f_blocks.saturating_mul(disk.f_frsize);
        let reserve = (size / RESERVE).min(LARGEST_RESERVE);
        match bytes > 0 && bytes.saturating_add(reserve) > free {
            true => Err(DataError::Full {
                path: self.root.clone(),
                bytes,
                free: free.saturating_sub(reserve),
            }),
            false => Ok(()),
        }
    }

    /// A new file for a content.
    pub(super) fn new_content(&self) -> Result<tempfile::NamedTempFile, DataError> {
        let folder = self.files();
        let file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(&folder);
        file.map_err(DataError::cache("write to", &folder))
    }

    pub(super) fn not_written(&self, path: &Path, bytes: u64, error: io::Error) -> DataError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DataError::Full {
                path: self.root.clone(),
                bytes,
                free: 0,
            },
            _ => DataError::cache("write", path)(error),
        }
    }

    /// Keeps a complete and verified content.
    pub(super) fn keep(
        &self,
        new: tempfile::NamedTempFile,
        file: &DataFile,
    ) -> Result<(), DataError> {
        let path = self.content(&file.content, file.executable);
        let above = path.parent().unwrap_or(&self.root).to_owned();
        fs::create_dir_all(&above).map_err(DataError::cache("create", &above))?;
        let mode = if file.executable { 0o555 } else { 0o444 };
        let time = UNIX_EPOCH + Duration::from_secs(MODIFIED);
        let set = new.as_file().set_permissions(Permissions::from_mode(mode));
        set.and_then(|()| new.as_file().set_modified(time))
            .map_err(DataError::cache("write", &path))?;
        new.persist(&path)
            .map(drop)
            .map_err(|failed| DataError::cache("create", &path)(failed.error))
    }

    /// Places a folder whose contents are all in the cache.
    pub(super) fn place(&self, manifest: &Manifest, sha256: &str) -> Result<(), DataError> {
        let trees = self.root.join("trees");
        let new = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempdir_in(&trees);
        let new = new.map_err(DataError::cache("write to", &trees))?.keep();
        let content = |file: &DataFile| self.content(&file.content, file.executable);
        let made = tree::make(content, manifest, &new)
            // Without a sync, content that is lost in a power failure would look complete.
            .and_then(|()| tree::sync(&trees))
            .and_then(|()| self.put_manifest(manifest, sha256))
            .and_then(|()| self.put_tree(&new, sha256));
        if made.is_err() {
            let _ = remove_tree(&new);
        }
        made
    }

    fn put_manifest(&self, manifest: &Manifest, sha256: &str) -> Result<(), DataError> {
        let path = self.manifest(sha256);
        let above = path.parent().unwrap_or(&self.root);
        let written = || {
            let mut file = tempfile::NamedTempFile::new_in(above)?;
            io::Write::write_all(&mut file, manifest.to_text().as_bytes())?;
            file.persist(&path).map_err(|failed| failed.error)?;
            Ok(())
        };
        written().map_err(DataError::cache("write", &path))
    }

    /// Gives a new folder its final name. If a folder with changed files exists there, it is moved
    /// aside, because tasks may use it, and removed with the unused data.
    fn put_tree(&self, new: &Path, sha256: &str) -> Result<(), DataError> {
        let path = self.tree(sha256);
        if fs::symlink_metadata(&path).is_ok() {
            let mut aside = new.as_os_str().to_owned();
            aside.push("-old");
            fs::rename(&path, aside).map_err(DataError::cache("rename", &path))?;
        }
        fs::rename(new, &path).map_err(DataError::cache("create", &path))
    }

    /// Returns true if the folder of a manifest exists with unchanged files.
    pub(super) fn is_placed(&self, manifest: &Manifest, sha256: &str) -> bool {
        let tree = self.tree(sha256);
        let is_link = |path: &str| {
            fs::symlink_metadata(tree.join(path)).is_ok_and(|found| found.is_symlink())
        };
        self.manifest(sha256).exists()
            && fs::symlink_metadata(&tree).is_ok_and(|found| found.is_dir())
            && manifest.links.iter().all(|link| is_link(&link.path))
            && manifest.files.iter().all(|file| {
                fs::symlink_metadata(tree.join(&file.path))
                    .is_ok_and(|found| is_unchanged(&found, file))
            })
    }

    /// Records a use of placed data.
    pub(super) fn used(&self, sha256: &str, added: u64) -> Result<Placed, DataError> {
        let manifest = self.manifest(sha256);
        let touched = File::open(&manifest).and_then(|file| file.set_modified(SystemTime::now()));
        // The file may belong to another user.
        if let Err(error) = touched {
            tracing::debug!(%error, "the use of data is not recorded");
        }
        Ok(Placed {
            path: self.tree(sha256),
            added,
        })
    }

    /// The data in the cache, least recently used first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn kept(&self) -> Result<Vec<KeptData>, DataError> {
        let folder = self.root.join("manifests");
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(DataError::cache("read", &folder))?,
        };
        let mut kept = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            let Some(sha256) = name.strip_suffix(".json").filter(|name| is_sha256(name)) else {
                continue;
            };
            let used = entry.metadata().and_then(|found| found.modified());
            let Some(manifest) = self.read_manifest(sha256) else {
                continue;
            };
            kept.push(KeptData {
                sha256: sha256.to_owned(),
                files: manifest.files.len() as u64,
                bytes: manifest.bytes(),
                used: used.unwrap_or(UNIX_EPOCH),
            });
        }
        kept.sort_by(|a, b| (a.used, &a.sha256).cmp(&(b.used, &b.sha256)));
        Ok(kept)
    }

    pub(super) fn read_manifest(&self, sha256: &str) -> Option<Manifest> {
        let text = fs::read_to_string(self.manifest(sha256)).ok()?;
        Manifest::parse(&text).ok()
    }

    /// The disk usage of all contents in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let folders = fs::read_dir(self.files()).into_iter().flatten().flatten();
        let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten());
        let sizes = files.flatten().filter_map(|file| file.metadata().ok());
        sizes
            .map(|found| found.blocks().saturating_mul(512))
            .fold(0, u64::saturating_add)
    }
}

/// Returns true if a file is a content that no program has changed.
fn is_unchanged(found: &fs::Metadata, file: &DataFile) -> bool {
    let is_executable = found.mode() & 0o111 != 0;
    found.is_file()
        && found.len() == file.size
        && found.mtime() == i64::try_from(MODIFIED).unwrap_or_default()
        && found.mode() & 0o222 == 0
        && is_executable == file.executable
}

/// Takes a shared lock of a file. `None` if the file system has no locks.
fn shared(file: &File) -> io::Result<Option<File>> {
    let locked = rustix::fs::flock(file, rustix::fs::FlockOperation::LockShared);
    supported(file.try_clone()?, locked)
}

fn supported(file: File, locked: rustix::io::Result<()>) -> io::Result<Option<File>> {
    match locked {
        Ok(()) => Ok(Some(file)),
        // Each step is atomic, so without locks contents are only fetched twice.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOLCK | rustix::io::Errno::NOSYS) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
