//! Unpacks an archive that may be hostile: nothing is written outside of the
//! target folder, and never more than the limits allow.

use std::{
    fs, io,
    io::Read,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink},
    path::{Component, Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use tar::EntryType;

/// How much an archive may unpack to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of all files together.
    pub bytes: u64,
    /// The most files, folders and links together.
    pub entries: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 64 << 30,
            entries: 2_000_000,
        }
    }
}

/// Why an archive is not unpacked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// An entry that a bundle must not have.
    #[error("the bundle is refused: {} {problem}", path.display())]
    Refused {
        /// The entry's path, as written.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// More than the limits allow.
    #[error("the bundle is refused: it unpacks to more than {limit} {what}")]
    TooLarge {
        /// The limit.
        limit: u64,
        /// `bytes` or `files`.
        what: &'static str,
    },
    /// The archive cannot be read.
    #[error("the bundle cannot be read: {0}")]
    Read(#[source] io::Error),
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Whether a link at `link` (relative to a root) that points to `target` stays
/// within the root, whatever other links of this kind there are.
///
/// `..` may stand at the beginning only: behind a name it would be taken from
/// wherever that name leads.
///
/// ```
/// use longshore_launcher::extract::is_confined;
/// use std::path::Path;
/// assert!(is_confined(Path::new("a/link"), Path::new("../b/c")));
/// assert!(!is_confined(Path::new("a/link"), Path::new("../../b")));
/// assert!(!is_confined(Path::new("a/link"), Path::new("b/../c")));
/// assert!(!is_confined(Path::new("a/link"), Path::new("/etc")));
/// ```
#[must_use]
pub fn is_confined(link: &Path, target: &Path) -> bool {
    let mut depth = link.components().count().saturating_sub(1);
    let mut names = false;
    for part in target.components() {
        match part {
            Component::ParentDir if names || depth == 0 => return false,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => names = true,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    !target.as_os_str().is_empty()
}

/// Unpacks a .tar.gz into a folder that exists, and gives the number of
/// entries.
///
/// Refused are: absolute paths, `..`, paths through links, links out of the
/// tree, hard links, devices, pipes, an entry that comes twice, and more than
/// the limits. Set-user-id and like bits are taken off.
///
/// # Errors
/// Names the entry and what is wrong with it. What was written before stays:
/// the caller throws the folder away.
pub fn extract(archive: impl Read, target: &Path, limits: &Limits) -> Result<u64, ExtractError> {
    // What inflates beyond the limit is never read: names and padding count,
    // which the slack allows for.
    let slack = limits
        .entries
        .saturating_mul(8 * 1024)
        .saturating_add(1 << 20);
    let reader = MultiGzDecoder::new(archive).take(limits.bytes.saturating_add(slack));
    let mut archive = tar::Archive::new(reader);
    let (mut entries, mut bytes) = (0_u64, 0_u64);
    for entry in archive.entries().map_err(ExtractError::Read)? {
        let mut entry = entry.map_err(ExtractError::Read)?;
        let path = entry.path().map_err(ExtractError::Read)?.into_owned();
        let refused = |problem: &str| ExtractError::Refused {
            path: path.clone(),
            problem: problem.to_owned(),
        };
        entries += 1;
        if entries > limits.entries {
            return Err(ExtractError::TooLarge {
                limit: limits.entries,
                what: "files",
            });
        }
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        let inside = clean(&path).map_err(refused)?;
        if inside.as_os_str().is_empty() {
            if kind == EntryType::Directory {
                continue;
            }
            return Err(refused("has no name"));
        }
        let full = target.join(&inside);
        let write = |source| ExtractError::Write {
            path: full.clone(),
            source,
        };
        make_parents(target, &inside, &path)?;
        match kind {
            EntryType::Directory => match full.symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Err(refused("comes twice, as a file and as a folder")),
                Err(_) => folder(&full).map_err(write)?,
            },
            EntryType::Symlink => {
                let link = entry.link_name().map_err(ExtractError::Read)?;
                let link = link.ok_or_else(|| refused("is a link to nothing"))?;
                if !is_confined(&inside, &link) {
                    return Err(refused(&format!(
                        "is a link out of the folder, to {}",
                        link.display()
                    )));
                }
                symlink(&link, &full).map_err(|error| twice(error, &path, write))?;
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                bytes = bytes.saturating_add(entry.size());
                if bytes > limits.bytes {
                    return Err(ExtractError::TooLarge {
                        limit: limits.bytes,
                        what: "bytes",
                    });
                }
                let mode = entry.header().mode().map_err(ExtractError::Read)? & 0o777;
                let mut file = fs::OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&full)
                    .map_err(|error| twice(error, &path, write))?;
                let copied = io::copy(&mut entry, &mut file).map_err(ExtractError::Read)?;
                if copied != entry.size() {
                    return Err(refused("is cut off"));
                }
                file.set_permissions(fs::Permissions::from_mode(mode | 0o600))
                    .map_err(write)?;
            }
            EntryType::Link => return Err(refused("is a hard link")),
            EntryType::Char | EntryType::Block => return Err(refused("is a device")),
            EntryType::Fifo => return Err(refused("is a named pipe")),
            _ => return Err(refused("is neither file, folder nor link")),
        }
    }
    Ok(entries)
}

fn twice(error: io::Error, path: &Path, write: impl Fn(io::Error) -> ExtractError) -> ExtractError {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return ExtractError::Refused {
            path: path.to_owned(),
            problem: "comes twice".into(),
        };
    }
    write(error)
}

/// The path without `.`; refuses what leads out.
fn clean(path: &Path) -> Result<PathBuf, &'static str> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir => return Err("has `..` in its path"),
            Component::RootDir | Component::Prefix(_) => return Err("has an absolute path"),
        }
    }
    Ok(clean)
}

/// Makes the folders above an entry; none of them may be a link.
fn make_parents(target: &Path, inside: &Path, shown: &Path) -> Result<(), ExtractError> {
    let mut full = target.to_owned();
    for part in inside.parent().into_iter().flat_map(Path::components) {
        full.push(part);
        match full.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(found) => {
                let what = if found.is_symlink() {
                    "a link"
                } else {
                    "a file"
                };
                return Err(ExtractError::Refused {
                    path: shown.to_owned(),
                    problem: format!("leads through {what}"),
                });
            }
            Err(_) => {
                folder(&full).map_err(|source| ExtractError::Write {
                    path: full.clone(),
                    source,
                })?;
            }
        }
    }
    Ok(())
}

fn folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o755).create(path)
}

#[cfg(test)]
#[path = "extract_tests.rs"]
mod tests;
