//! Plans a container's view of the file system: the mounts that make its volumes appear at their
//! mount paths. Pure; [`Machine`] provides the existing files.
//!
//! If every mount path exists on the machine, volumes are bind-mounted over them in the container's
//! own mount namespace. If one is missing, its deepest existing ancestor is covered by an empty
//! tmpfs; all its entries are bind-mounted back and the missing directories created, so that
//! nothing on the machine changes. For a directory missing in `/`, that means a new root.
//!
//! Containers write to their volumes, so every path below a volume may have become a symbolic link
//! in the meantime. The child walks such paths component by component with file descriptors, and
//! rejects links.

mod cgroups;
mod cover;
mod machine;
mod resolve;
mod restrict;

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::cgroups::Shown;
use cover::{below, cover, make_path};
pub(crate) use machine::{Entry, FileKind, Machine, ThisMachine};
use resolve::{ResolvedMount, resolve_mounts};

/// A volume, or a part of it, at a mount path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The source on the machine.
    pub(crate) source: Source,
    /// The absolute path in the container.
    pub(crate) target: PathBuf,
    /// True if the mount is read-only.
    pub(crate) read_only: bool,
}

/// A file or directory on the machine to mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// An existing file or directory. Containers cannot change its path.
    pub(crate) path: PathBuf,
    /// The part below `path` to mount. Containers may change it at any time, so symbolic links are
    /// not followed.
    pub(crate) below: Option<Below>,
}

/// A part of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Below {
    /// The path below the volume.
    pub(crate) path: PathBuf,
    /// The file type.
    pub(crate) kind: FileKind,
    /// The mode of missing directories; `None` creates none.
    pub(crate) mode: Option<u32>,
}

impl Source {
    /// Returns a source that mounts everything at a path.
    pub(crate) fn whole(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            below: None,
        }
    }

    /// Returns the full path, for messages.
    pub(crate) fn full(&self) -> PathBuf {
        match &self.below {
            Some(below) => self.path.join(&below.path),
            None => self.path.clone(),
        }
    }
}

/// Restrictions of a container's view, in addition to its volumes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Restrictions<'a> {
    /// True if all files except the volumes' files are read-only.
    pub(crate) read_only_root: bool,
    /// True if parts of `/proc` are hidden or read-only.
    pub(crate) masks_proc: bool,
    /// The directories of the container's cgroup, which are the only cgroups that it sees.
    pub(crate) cgroups: &'a [Shown],
    /// True if the container may write to its cgroup.
    pub(crate) writable_cgroups: bool,
}

/// A path that is walked from a directory without following symbolic links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Walk {
    /// The start: a path that containers cannot change.
    pub(crate) from: PathBuf,
    /// The path from there; may be empty.
    pub(crate) below: PathBuf,
}

/// An operation of the child. Operations run in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Stops the propagation of later mounts to other mount namespaces.
    Private,
    /// Mounts an empty file system in memory.
    Tmpfs {
        at: PathBuf,
        mode: u32,
        group: Option<u32>,
        /// The maximum size in bytes. Without it, the kernel's default applies.
        size: Option<u64>,
    },
    /// Creates a directory if it does not exist.
    Folder { at: PathBuf },
    /// Creates an empty file to mount over if it does not exist.
    File { at: PathBuf },
    /// Creates a symbolic link.
    Link { to: PathBuf, at: PathBuf },
    /// Bind-mounts `from` at `at`. If it is optional, a failure is ignored.
    Bind {
        from: PathBuf,
        at: PathBuf,
        optional: bool,
    },
    /// Creates the missing parts of a path: directories, and the last component
    /// by its type.
    Make {
        walk: Walk,
        kind: FileKind,
        mode: u32,
    },
    /// Mounts the end of one walk also at the end of the other.
    Attach {
        from: Walk,
        at: Walk,
        read_only: bool,
        /// The directory of this process's descriptors, for kernels that
        /// require paths.
        descriptors: PathBuf,
    },
    /// Makes the mount at this path read-only.
    ReadOnly { at: PathBuf },
    /// Makes this mount and all below it read-only.
    ReadOnlyTree { at: PathBuf },
    /// Makes this path writable again, if it is a mount.
    Writable { at: PathBuf },
    /// Detaches the mount at this path where the kernel allows it.
    Detach { at: PathBuf },
    /// Hides a file or directory, if it exists.
    Mask { at: PathBuf },
    /// Makes a file or directory read-only, if it exists.
    Protect { at: PathBuf },
    /// Mounts the proc file system of the PID namespace where the kernel allows it.
    Processes { at: PathBuf },
    /// Makes `root` the root; the old root remains visible at `old` (below
    /// `root`).
    Pivot { root: PathBuf, old: PathBuf },
    /// Makes `root` the root and detaches the old one.
    Enter { root: PathBuf },
}

/// The reason why a view cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ViewError {
    /// The mount path is invalid.
    #[error("mountPath {0:?} must be an absolute path without \"..\"")]
    BadPath(PathBuf),
    /// A directory would be mounted over a file, or a file over a directory.
    #[error(
        "mountPath {target:?} is a {there} on this machine and the volume is a {wanted}; \
         choose another mountPath"
    )]
    OtherKind {
        /// The mount path.
        target: PathBuf,
        /// The type of the existing file.
        there: &'static str,
        /// The type of the volume.
        wanted: &'static str,
    },
    /// The directory to cover cannot be read.
    #[error(
        "mountPath {target:?} does not exist on this machine and {folder:?}, in which it would \
         be made, cannot be read: {source}; choose a mountPath elsewhere"
    )]
    Unreadable {
        /// The mount path.
        target: PathBuf,
        /// The parent directory.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The source of a volume cannot be resolved.
    #[error("the volume's folder {path:?} cannot be found: {source}")]
    Source {
        /// The source.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Returns the operations that mount `mounts`. `base` is an existing empty directory in which a new
/// root is built. Sources and `base` are paths on the machine.
pub(crate) fn plan(
    mounts: &[Mount],
    restrictions: Restrictions<'_>,
    machine: &dyn Machine,
    base: &Path,
) -> Result<Vec<Operation>, ViewError> {
    let resolved = resolve_mounts(mounts, machine)?;
    let hidden = |source: &Source| {
        let full = source.full();
        resolved.iter().any(|mount| full.starts_with(&mount.target))
    };
    // With a new root, read-only settings do not affect the volumes' sources.
    let in_place = !restrictions.read_only_root
        && resolved.iter().all(|mount| mount.cover.is_none())
        && !resolved.iter().any(|mount| hidden(&mount.source));

    let mut operations = vec![Operation::Private];
    let (old, new) = if in_place {
        (PathBuf::from("/"), PathBuf::from("/"))
    } else {
        operations.push(Operation::Tmpfs {
            at: base.to_owned(),
            mode: 0o755,
            group: None,
            size: None,
        });
        operations.push(Operation::Folder {
            at: base.join("old"),
        });
        operations.push(Operation::Folder {
            at: base.join("new"),
        });
        operations.push(Operation::Pivot {
            root: base.to_owned(),
            old: base.join("old"),
        });
        let (old, new) = (PathBuf::from("/old"), PathBuf::from("/new"));
        cover(&resolved, machine, &old, &new, &mut operations)?;
        (old, new)
    };
    for mount in resolved.iter().filter(|mount| mount.cover.is_some()) {
        make_path(&new, &mount.target, mount.kind, &mut operations);
    }
    if restrictions.read_only_root {
        restrict::read_only(&new, &mut operations);
    }
    // A volume may show the machine's cgroups.
    if !resolved
        .iter()
        .any(|mount| cgroups::overlaps(&mount.target))
    {
        let stage = match in_place {
            true => base.to_owned(),
            false => PathBuf::from("/cgroups"),
        };
        cgroups::show(&restrictions, &old, &new, &stage, &mut operations);
    }
    for mount in &resolved {
        attach(mount, &resolved, &old, &new, &mut operations);
    }
    operations.push(Operation::Processes {
        at: below(&new, Path::new("/proc")),
    });
    if restrictions.masks_proc {
        restrict::mask(&new, &mut operations);
    }
    for mount in resolved.iter().filter(|mount| mount.is_plain()) {
        if mount.read_only {
            operations.push(Operation::ReadOnly {
                at: below(&new, &mount.target),
            });
        }
    }
    if !in_place {
        operations.push(Operation::Enter { root: new });
    }
    Ok(operations)
}

/// Mounts a volume, by paths if containers could not have changed them, otherwise by descriptors.
fn attach(
    mount: &ResolvedMount,
    resolved: &[ResolvedMount],
    old: &Path,
    new: &Path,
    operations: &mut Vec<Operation>,
) {
    if mount.is_plain() {
        operations.push(Operation::Bind {
            from: below(old, &mount.source.path),
            at: below(new, &mount.target),
            optional: false,
        });
        return;
    }
    let walk = |source: &Source, rest: &Path| Walk {
        from: below(old, &source.path),
        below: match &source.below {
            Some(below) => below.path.join(rest),
            None => rest.to_owned(),
        },
    };
    let from = walk(&mount.source, Path::new(""));
    if let Some(part) = &mount.source.below
        && let Some(mode) = part.mode
    {
        operations.push(Operation::Make {
            walk: from.clone(),
            kind: part.kind,
            mode,
        });
    }
    let mut at = Walk {
        from: below(new, &mount.target),
        below: PathBuf::new(),
    };
    if let Some(nest) = &mount.nest {
        // The mount point, in the volume that contains it.
        let inner = &resolved[nest.inner];
        let rest = relative(&mount.target, &inner.target);
        operations.push(Operation::Make {
            walk: walk(&inner.source, &rest),
            kind: mount.kind,
            mode: 0o755,
        });
        let outer = &resolved[nest.outer].target;
        at = Walk {
            from: below(new, outer),
            below: relative(&mount.target, outer),
        };
    }
    operations.push(Operation::Attach {
        from,
        at,
        read_only: mount.read_only,
        descriptors: old.join("proc/self/fd"),
    });
}

fn relative(path: &Path, to: &Path) -> PathBuf {
    path.strip_prefix(to).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests;
