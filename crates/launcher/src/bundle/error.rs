//! Why a folder cannot be packed.

use std::{io, path::PathBuf};

use super::SecretFile;

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
    /// The folder is not the one any more that was looked through.
    #[error("the folder {} changed before it was packed; try again when nothing writes to it", path.display())]
    FolderChanged {
        /// The folder.
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
    /// More than one of these at once.
    #[error("{} problems keep the folder from being sent: {}", .0.len(), joined(.0))]
    Several(Vec<BundleError>),
    /// The archive cannot be written.
    #[error("cannot write the bundle: {0}; is there room in the temporary folder?")]
    Write(#[source] io::Error),
    /// The caller set the flag of [`PackOptions::stop`](super::PackOptions::stop).
    /// Nothing is left of the archive.
    #[error("packing was interrupted")]
    Stopped,
}

/// How many secrets, links and unreadable files an error names.
pub(super) const NAMED: usize = 50;

fn joined(problems: &[BundleError]) -> String {
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    problems.join("; ")
}

fn listed(secrets: &[SecretFile]) -> String {
    let named = secrets.iter().take(NAMED);
    let named = named.map(|secret| format!("{} ({})", secret.path.display(), secret.what));
    let mut text = named.collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = secrets.len().checked_sub(NAMED) {
        text = format!("{text}, and {more} more");
    }
    text
}
