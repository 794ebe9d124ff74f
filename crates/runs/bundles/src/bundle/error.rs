//! Errors of packing a folder.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::SecretFile;

/// An error of packing a folder.
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
    #[error("{}", unreadable(path, source))]
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
        /// The target of the link.
        target: PathBuf,
    },
    /// An invalid ignore pattern.
    #[error("invalid ignore patterns in {}: {problem}", path.display())]
    Pattern {
        /// The file, or the setting with the patterns.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// Files that look like secrets.
    #[error("the folder contains files that look like secrets: {}; exclude them with .longshoreignore and provide them as a Secret, or allow them with `allow_secrets`", listed(.0))]
    Secrets(Vec<SecretFile>),
    /// Several of these errors.
    #[error("{} problems prevent packing the folder: {}", problems.len() + more, joined(problems, *more))]
    Several {
        /// The first ones.
        problems: Vec<BundleError>,
        /// The number of the others.
        more: usize,
    },
    /// The archive cannot be written.
    #[error("cannot write the bundle: {0}; check the free space of the temporary folder")]
    Write(#[source] io::Error),
    /// The caller set the flag of [`PackOptions::stop`](super::PackOptions::stop).
    /// The archive was removed.
    #[error("packing was interrupted")]
    Stopped,
}

/// The maximum number of secrets, and of links and unreadable files in an error.
pub(super) const NAMED: usize = 10;
/// The number of bytes of a path at each end that an error shows.
const PATH_END_BYTES: usize = 120;

fn joined(problems: &[BundleError], more: usize) -> String {
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let text = problems.join("; ");
    match more {
        0 => text,
        more => format!("{text}; and {more} more"),
    }
}

/// A path for an error, without its middle if it is very long.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    if text.len() <= 2 * PATH_END_BYTES {
        return text;
    }
    let begin = text.floor_char_boundary(PATH_END_BYTES);
    let end = text.ceil_char_boundary(text.len() - PATH_END_BYTES);
    format!("{}…{}", &text[..begin], &text[end..])
}

/// The error of a folder or file that cannot be read, with the remedy.
fn unreadable(path: &Path, source: &io::Error) -> String {
    let path = shown(path);
    let too_long = source.raw_os_error() == Some(rustix::io::Errno::NAMETOOLONG.raw_os_error());
    match too_long {
        true => format!(
            "cannot read {path}: it is in too many folders, so that its path is too long; exclude a folder above it with .longshoreignore"
        ),
        false => format!(
            "cannot read {path}: {source}; exclude it with .longshoreignore if it is not needed"
        ),
    }
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
