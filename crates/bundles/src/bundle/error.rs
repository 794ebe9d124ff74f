//! Why a folder cannot be packed.

use std::{io, path::PathBuf};

use super::SecretFile;

/// Why a folder cannot be packed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The path is not a folder.
    #[error("cannot pack {}: {problem}", path.display())]
    NoFolder {
        /// The path given.
        path: PathBuf,
        /// `it does not exist`, `it is a file, not a folder`.
        problem: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {source}; exclude it with .longshoreignore if it is not needed", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file changed while it was read.
    #[error("{} changed while it was packed; try again when nothing writes to it, or exclude it with .longshoreignore", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The folder changed after it was scanned.
    #[error("the folder {} changed before it was packed; try again when nothing writes to it", path.display())]
    FolderChanged {
        /// The folder.
        path: PathBuf,
    },
    /// A symbolic link that points outside the folder.
    #[error("the link {} points outside the folder, to {}: it would be broken in the pod; copy its target into the folder, or exclude the link with .longshoreignore", path.display(), target.display())]
    Link {
        /// The link, within the folder.
        path: PathBuf,
        /// Where it points.
        target: PathBuf,
    },
    /// An invalid ignore pattern.
    #[error("invalid ignore patterns in {}: {problem}", path.display())]
    Pattern {
        /// The file, or the setting with the patterns.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Files that look like secrets.
    #[error("the folder contains files that look like secrets: {}; exclude them with .longshoreignore and provide them as a Secret, or allow them with `allow_secrets`", listed(.0))]
    Secrets(Vec<SecretFile>),
    /// Several of these errors.
    #[error("{} problems prevent packing the folder: {}", .0.len(), joined(.0))]
    Several(Vec<BundleError>),
    /// The archive cannot be written.
    #[error("cannot write the bundle: {0}; check the free space of the temporary folder")]
    Write(#[source] io::Error),
    /// The caller set the flag of [`PackOptions::stop`](super::PackOptions::stop).
    /// The archive was removed.
    #[error("packing was interrupted")]
    Stopped,
}

/// The maximum number of secrets, links and unreadable files in an error.
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
