//! Keeps the files of a task.

use std::{fs::OpenOptions, os::unix::fs::PermissionsExt as _, path::Path};

use jiff::Timestamp;
use longshore_diagnosis::names;

use super::{
    Manifest, OutputFile, OutputTask, Outputs, OutputsError, Reason, content::NotStored,
    manifest::VERSION, patterns::Patterns, walk::Tree,
};

/// The free space that the lists of outputs need at least, in bytes.
const LEAST_FREE: u64 = 1 << 20;

impl Outputs {
    /// Keeps the matching files of a task's folder, which is in the run's volume. `ended` is true
    /// if the task has ended. Files of a running task may be incomplete, and never replace the
    /// files of an ended attempt.
    ///
    /// Returns `None` if the run was removed, the task has no folder, or it has no metrics file and
    /// nothing else is requested.
    ///
    /// # Errors
    /// The list cannot be written. Other failures are reported in [`Manifest::problem`].
    pub fn collect(
        &self,
        task: &OutputTask,
        volume: &Path,
        ended: bool,
        now: Timestamp,
    ) -> Result<Option<Manifest>, OutputsError> {
        // Most tasks do not write metrics. They need no list, unless an earlier attempt has one.
        if task.request.is_only_metrics() && !has_metrics(volume) && !self.has_manifest(task) {
            return Ok(None);
        }
        let patterns = Patterns::new(&task.request.patterns);
        let patterns = patterns.map_err(|error| OutputsError::Annotation {
            problem: error.to_string(),
        })?;
        let lock = self.lock()?;
        lock.lock_shared()
            .map_err(OutputsError::system("lock", &self.root))?;
        if self.is_removed(&task.namespace, &task.run) {
            return Ok(None);
        }
        let tree = match Tree::read(volume, names::WORK_FOLDER, &patterns) {
            Ok(None) => return Ok(None),
            Ok(Some(tree)) => Ok(tree),
            Err(error) => Err(OutputsError::system("read", volume)(error)),
        };
        let mut manifest = Manifest {
            version: VERSION,
            run: task.run.clone(),
            role: task.role.clone(),
            index: task.index,
            pod: task.pod.clone(),
            pod_uid: task.pod_uid.clone(),
            collected: now,
            ended,
            files: Vec::new(),
            left_out: Vec::new(),
            problem: None,
            left_out_more: 0,
        };
        let kept = tree.and_then(|tree| {
            // The command may have filled the disk with other files.
            let usable = self.usable_bytes();
            if ended && usable < task.request.max_bytes && usable < tree.bytes().max(LEAST_FREE) {
                tree.remove_others(&patterns);
            }
            let kept = self.keep_files(&tree, task, &mut manifest);
            manifest.leave_out_all(&tree.left_out, tree.left_out_more);
            kept
        });
        // The disk is full, for example. The list is small, and contains the problem.
        manifest.problem = kept.err().map(|error| error.to_string());
        match self.write_manifest(task, &manifest)? {
            true => Ok(Some(manifest)),
            false => Ok(None),
        }
    }

    fn keep_files(
        &self,
        tree: &Tree,
        task: &OutputTask,
        manifest: &mut Manifest,
    ) -> Result<(), OutputsError> {
        let limit = task.request.max_bytes.min(self.usable_bytes());
        let too_large = match limit < task.request.max_bytes {
            true => Reason::DiskSpace,
            false => Reason::SizeLimit,
        };
        let mut left = limit;
        for found in &tree.found {
            if manifest.files.len() as u64 >= task.request.max_files {
                manifest.leave_out(found.path.clone(), Reason::FileLimit);
                continue;
            }
            let mut file = match tree.open(found) {
                Ok(file) => file,
                Err(reason) => {
                    manifest.leave_out(found.path.clone(), reason);
                    continue;
                }
            };
            let metadata = file.metadata();
            let reason = match metadata {
                Err(_) => Reason::Unreadable,
                Ok(metadata) if metadata.len() > left => too_large,
                Ok(metadata) => match self.store(&mut file, left) {
                    Ok(stored) => {
                        left = left.saturating_sub(stored.size);
                        manifest.files.push(OutputFile {
                            path: found.path.clone(),
                            size: stored.size,
                            sha256: stored.sha256,
                            executable: metadata.permissions().mode() & 0o100 != 0,
                        });
                        continue;
                    }
                    Err(NotStored::TooLarge) => too_large,
                    Err(NotStored::Read) => Reason::Unreadable,
                    Err(NotStored::Write(error)) => return Err(error),
                },
            };
            manifest.leave_out(found.path.clone(), reason);
        }
        Ok(())
    }

    /// The lock that processes share while they read or write outputs. A process that removes
    /// contents takes it exclusively.
    pub(super) fn lock(&self) -> Result<std::fs::File, OutputsError> {
        std::fs::create_dir_all(&self.root).map_err(OutputsError::system("create", &self.root))?;
        let path = self.root.join("lock");
        let mut options = OpenOptions::new();
        let opened = options.create(true).write(true).truncate(false).open(&path);
        opened.map_err(OutputsError::system("open", &path))
    }

    /// The disk space that outputs of a task may use, in bytes: half of the free space.
    fn usable_bytes(&self) -> u64 {
        let found = rustix::fs::statvfs(&self.root);
        found.map_or(u64::MAX, |found| {
            found.f_bavail.saturating_mul(found.f_frsize) / 2
        })
    }
}

/// Returns true if a task has written a metrics file to its folder in the run's volume.
fn has_metrics(volume: &Path) -> bool {
    let file = volume.join(names::WORK_FOLDER).join(names::METRICS_FILE);
    file.symlink_metadata().is_ok()
}
