//! The files of a folder of outputs: a list for each task, the marks of removed runs, and the
//! contents.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use longshore_files::remove_tree;
use longshore_model::name;

use super::{Manifest, OutputTask, Outputs, OutputsError};

/// The maximum size of a list.
const LONGEST_MANIFEST: u64 = 256 << 20;
/// Marks a removed run, whose pods may still be terminating.
const REMOVED: &str = "removed";
const ENDING: &str = ".json";

/// The disk usage of outputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputsUsage {
    /// The number of runs with outputs.
    pub runs: u64,
    /// The number of distinct contents.
    pub files: u64,
    /// The size of the contents in bytes.
    pub bytes: u64,
}

/// A run with outputs, or with the mark of its removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownRun {
    pub(super) namespace: String,
    pub(super) run: String,
    /// The time when the folder of the run was last changed.
    pub(super) changed: SystemTime,
}

/// The entries of a folder that may not exist.
fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, OutputsError> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries
            .and_then(Iterator::collect)
            .map_err(OutputsError::system("read", folder)),
    }
}

impl Outputs {
    fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    fn run(&self, namespace: &str, run: &str) -> PathBuf {
        self.runs().join(namespace).join(run)
    }

    /// Returns true if the run was removed.
    pub(super) fn is_removed(&self, namespace: &str, run: &str) -> bool {
        self.run(namespace, run).join(REMOVED).exists()
    }

    fn manifest(&self, task: &OutputTask) -> PathBuf {
        let folder = self.run(&task.namespace, &task.run);
        folder.join(format!("{}.{}{ENDING}", task.role, task.index))
    }

    /// Returns true if a task has a list.
    pub(super) fn has_manifest(&self, task: &OutputTask) -> bool {
        self.manifest(task).exists()
    }

    /// Writes the list of a task. Returns true if it was written: the files of a running task do
    /// not replace the files of an ended attempt.
    pub(super) fn write_manifest(
        &self,
        task: &OutputTask,
        manifest: &Manifest,
    ) -> Result<bool, OutputsError> {
        let folder = self.run(&task.namespace, &task.run);
        let created = fs::create_dir_all(&folder);
        created.map_err(|error| OutputsError::not_kept("create", &folder, error))?;
        // A client and the node may write the list at the same time.
        let lock = File::open(&folder).map_err(OutputsError::system("open", &folder))?;
        lock.lock().map_err(OutputsError::system("lock", &folder))?;
        let path = self.manifest(task);
        if !manifest.ended && Self::read_manifest(&path).is_ok_and(|known| known.ended) {
            return Ok(false);
        }
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(&folder)?;
            // Without a buffer, whose last bytes are written when it is dropped, so that an error
            // would be lost.
            file.write_all(&serde_json::to_vec(manifest)?)?;
            file.persist(&path).map_err(|error| error.error)
        };
        write().map_err(|error: io::Error| OutputsError::not_kept("write", &path, error))?;
        Ok(true)
    }

    fn read_manifest(path: &Path) -> Result<Manifest, OutputsError> {
        let text = longshore_files::read_limited(path, LONGEST_MANIFEST);
        let text = text.map_err(OutputsError::system("read", path))?;
        let damaged = |problem: String| OutputsError::Manifest {
            path: path.to_owned(),
            problem,
        };
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        manifest.check().map_err(damaged)?;
        Ok(manifest)
    }

    /// The outputs of a run's tasks, sorted by role and index.
    ///
    /// # Errors
    /// The folder cannot be read, or a list is damaged.
    pub fn of_run(&self, namespace: &str, run: &str) -> Result<Vec<Manifest>, OutputsError> {
        let (found, mut damaged) = self.of_tasks(namespace, run)?;
        match damaged.pop() {
            Some(error) => Err(error),
            None => Ok(found),
        }
    }

    /// Like [`of_run`](Self::of_run), but also returns the errors of damaged lists.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn of_tasks(
        &self,
        namespace: &str,
        run: &str,
    ) -> Result<(Vec<Manifest>, Vec<OutputsError>), OutputsError> {
        let (mut found, mut damaged) = (Vec::new(), Vec::new());
        if name::dns_label("namespace", namespace).is_err() || name::dns_label("run", run).is_err()
        {
            return Ok((found, damaged));
        }
        for entry in entries(&self.run(namespace, run))? {
            let name = entry.file_name();
            if !name.to_string_lossy().ends_with(ENDING) {
                continue;
            }
            match Self::read_manifest(&entry.path()) {
                Ok(manifest) => found.push(manifest),
                Err(error) => damaged.push(error),
            }
        }
        found.sort_by(|a, b| (&a.role, a.index).cmp(&(&b.role, b.index)));
        Ok((found, damaged))
    }

    /// All runs with outputs.
    pub(super) fn known_runs(&self) -> Result<Vec<KnownRun>, OutputsError> {
        let mut known = Vec::new();
        for namespace in entries(&self.runs())? {
            for run in entries(&namespace.path())? {
                let path = run.path();
                let changed = run.metadata().and_then(|found| found.modified());
                known.push(KnownRun {
                    namespace: namespace.file_name().to_string_lossy().into_owned(),
                    run: run.file_name().to_string_lossy().into_owned(),
                    changed: changed.map_err(OutputsError::system("read", &path))?,
                });
            }
        }
        Ok(known)
    }

    /// Removes the outputs of a removed run, and marks it, so that none are added while its pods
    /// terminate. For a schedule, removes the outputs of all its runs. Returns the number of freed
    /// bytes.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub fn remove(&self, namespace: &str, run: &str) -> Result<u64, OutputsError> {
        if !self.root.exists() {
            return Ok(0);
        }
        let lock = self.lock()?;
        lock.lock()
            .map_err(OutputsError::system("lock", &self.root))?;
        let folder = self.run(namespace, run);
        let has_outputs = folder.exists();
        self.forget(&folder)?;
        fs::create_dir_all(&folder).map_err(OutputsError::system("create", &folder))?;
        let mark = folder.join(REMOVED);
        File::create(&mark).map_err(OutputsError::system("create", &mark))?;
        match has_outputs {
            true => self.remove_unused(),
            false => Ok(0),
        }
    }

    /// Removes the folder of a run.
    pub(super) fn forget(&self, folder: &Path) -> Result<(), OutputsError> {
        remove_tree(folder).map_err(OutputsError::system("remove", folder))
    }

    /// Removes the folder of a known run.
    pub(super) fn forget_run(&self, run: &KnownRun) -> Result<(), OutputsError> {
        self.forget(&self.run(&run.namespace, &run.run))
    }

    /// Removes contents that no list refers to. The caller must have the exclusive lock. If a list
    /// is damaged, nothing is removed, because its contents are unknown.
    pub(super) fn remove_unused(&self) -> Result<u64, OutputsError> {
        let mut used = BTreeSet::new();
        for run in self.known_runs()? {
            for manifest in self.of_run(&run.namespace, &run.run)? {
                used.extend(manifest.files.into_iter().map(|file| file.sha256));
            }
        }
        let mut freed: u64 = 0;
        self.each_content(|name, entry| {
            if used.contains(name) {
                return Ok(());
            }
            let size = entry.metadata().map_or(0, |found| found.len());
            fs::remove_file(entry.path())?;
            freed = freed.saturating_add(size);
            Ok(())
        })?;
        Ok(freed)
    }

    /// Calls a function with each file of contents, including incomplete ones.
    fn each_content(
        &self,
        mut each: impl FnMut(&str, &fs::DirEntry) -> io::Result<()>,
    ) -> Result<(), OutputsError> {
        for entry in entries(&self.contents())? {
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let files = match is_folder {
                true => entries(&path)?,
                false => vec![entry],
            };
            for file in files {
                let name = file.file_name();
                each(&name.to_string_lossy(), &file)
                    .map_err(OutputsError::system("remove", &file.path()))?;
            }
        }
        Ok(())
    }

    /// The current disk usage.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn usage(&self) -> Result<OutputsUsage, OutputsError> {
        let mut usage = OutputsUsage::default();
        for run in self.known_runs()? {
            let has_list = entries(&self.run(&run.namespace, &run.run))?
                .iter()
                .any(|entry| entry.file_name().to_string_lossy().ends_with(ENDING));
            usage.runs = usage.runs.saturating_add(u64::from(has_list));
        }
        self.each_content(|_, entry| {
            // Another process may have removed the file.
            if let Ok(found) = entry.metadata() {
                usage.files = usage.files.saturating_add(1);
                usage.bytes = usage.bytes.saturating_add(found.len());
            }
            Ok(())
        })?;
        Ok(usage)
    }

    /// Opens the content of a file.
    pub(super) fn open_content(&self, sha256: &str) -> io::Result<File> {
        File::open(self.content(sha256))
    }
}
