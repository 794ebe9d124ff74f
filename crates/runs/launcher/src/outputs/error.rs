//! Errors of keeping or fetching outputs.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::terminal_text::escaped;

/// An error of keeping or fetching outputs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputsError {
    /// The cluster does not keep outputs, and no store for them is configured.
    #[error(
        "outputs: this cluster keeps no files of tasks: set `store` to an object store (s3://…, gs://… or az://…), `outputs_claim` to a PersistentVolumeClaim, or remove `outputs`"
    )]
    NotKept,
    /// Signed URLs expire, and each run of a schedule needs its own URLs.
    #[error(
        "outputs: runs of a schedule cannot upload files of tasks, because signed URLs are valid for 7 days; set `outputs_claim` to a PersistentVolumeClaim, or remove `outputs`"
    )]
    Scheduled,
    /// The signed URLs do not fit into the run's Secret.
    #[error(
        "outputs: the signed URLs of {tasks} tasks need {size} bytes, but a Secret holds at most {limit}; split the run, or use a smaller `output_size_limit`"
    )]
    TooManyTasks {
        /// The number of tasks.
        tasks: u64,
        /// The size of the tasks' URLs in bytes.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// A claim cannot be read.
    #[error("the outputs in the claim {claim} cannot be read: {problem}")]
    Claim {
        /// The PersistentVolumeClaim.
        claim: String,
        /// The problem.
        problem: String,
    },
    /// The store cannot be read or used.
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    /// A file or folder of this machine cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    System {
        /// The attempted operation.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The disk lacks space for a fetched file, or the file exceeds the limit of the size of files.
    #[error(
        "no space to write {}: {source}; free some, or use another folder, and fetch again: files that are complete are kept", path.display()
    )]
    NoSpace {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The folder of the cluster lacks space for the outputs of a task.
    #[error(
        "no space for outputs in {}: {source}; free some: `longshore rm` removes runs with their outputs", path.display()
    )]
    NotKeptForSpace {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A task has replaced its outputs while they were read.
    #[error(
        "{task} has uploaded other files while these were read; fetch again: files that are complete are kept"
    )]
    Replaced {
        /// The task.
        task: String,
    },
    /// The annotation of a pod is invalid.
    #[error(
        "invalid annotation {}: {problem}",
        longshore_diagnosis::names::OUTPUTS
    )]
    Annotation {
        /// The problem.
        problem: String,
    },
    /// A pod is not a task of a run.
    #[error("the pod {pod:?} requests outputs, but is not a task of a run: {problem}")]
    NotATask {
        /// The pod's name.
        pod: String,
        /// The problem.
        problem: String,
    },
    /// The list of a task's files is damaged.
    #[error("the list of outputs {} is damaged: {problem}; run the task again", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A kept file is missing or has another content.
    #[error(
        "the kept content of {} is damaged: {problem}; run the task again",
        escaped(path)
    )]
    Damaged {
        /// The path in the task's folder.
        path: String,
        /// The problem.
        problem: String,
    },
    /// Files with another content exist in the target folder.
    #[error(
        "{} in {} {} another content: {}; use --force to overwrite, or another folder",
        if *count == 1 { "one file".to_owned() } else { format!("{count} files") },
        folder.display(),
        if *count == 1 { "has" } else { "have" },
        listed(examples, *count)
    )]
    Exists {
        /// The target folder.
        folder: PathBuf,
        /// Some of the files.
        examples: Vec<String>,
        /// The number of the files.
        count: u64,
    },
    /// A file cannot be written at its path in the target folder.
    #[error("cannot write {} to {}: {problem}; use another folder", escaped(path), folder.display())]
    Blocked {
        /// The target folder.
        folder: PathBuf,
        /// The path in the target folder.
        path: String,
        /// The obstacle.
        problem: String,
    },
}

/// Returns true if a write failed because of a full disk, a quota, or a limit of the size of files.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// The examples, and the number of the other files.
fn listed(examples: &[String], count: u64) -> String {
    let names: Vec<_> = examples.iter().map(|path| escaped(path)).collect();
    match count.saturating_sub(examples.len() as u64) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

impl OutputsError {
    /// The error for a file that cannot be written to the folder of a fetch.
    pub(super) fn not_written(path: &Path, error: impl Into<io::Error>) -> Self {
        let source = error.into();
        match is_full(&source) {
            true => Self::NoSpace {
                path: path.to_owned(),
                source,
            },
            false => Self::system("write", path)(source),
        }
    }

    /// The error for a file that cannot be written to the folder of a cluster's outputs.
    pub(super) fn not_kept(action: &'static str, path: &Path, source: io::Error) -> Self {
        match is_full(&source) {
            true => Self::NotKeptForSpace {
                path: path.to_owned(),
                source,
            },
            false => Self::system(action, path)(source),
        }
    }

    /// The error for a failed system call.
    pub(super) fn system<E: Into<io::Error>>(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self + use<E> {
        let path = path.to_owned();
        move |source| Self::System {
            action,
            path,
            source: source.into(),
        }
    }
}
