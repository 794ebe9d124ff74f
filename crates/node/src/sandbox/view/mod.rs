//! Plans a container's view of the machine's files: which mounts make its
//! volumes appear at their mount paths. Pure; [`Machine`] says what is there.
//!
//! Where every mount path exists on the machine, volumes are bound over them in
//! the container's own mount namespace. Where one is missing, the deepest
//! folder above it that exists is covered by an empty tmpfs into which all its
//! entries are bound back and the missing folders made, so that nothing on the
//! machine changes. For a folder missing in `/`, that means a new root.
//!
//! Containers write to their volumes, so every path below one may have become a
//! symbolic link since it was looked at. Such paths are walked in the child, one
//! descriptor after the other, and a link is refused.

mod cover;
mod machine;
mod place;
mod restrict;

use std::{
    io,
    path::{Path, PathBuf},
};

use cover::{below, cover, make_path};
pub(crate) use machine::{Entry, Found, Machine, ThisMachine};
use place::{Placed, place};

/// A volume, or a part of it, that a container wants at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Where it is on the machine.
    pub(crate) source: Source,
    /// Where the container sees it; absolute.
    pub(crate) target: PathBuf,
    /// Whether the container may not write to it.
    pub(crate) read_only: bool,
}

/// Something on the machine that is to be mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// A folder or file; exists. No container could change its path.
    pub(crate) path: PathBuf,
    /// What is meant below it, which containers may change at any time: it is
    /// reached without following symbolic links.
    pub(crate) below: Option<Below>,
}

/// A part of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Below {
    /// Its path below the volume.
    pub(crate) path: PathBuf,
    /// What it is.
    pub(crate) kind: Found,
    /// The mode of missing folders; `None`: none are made.
    pub(crate) mode: Option<u32>,
}

impl Source {
    /// All of what is at a path.
    pub(crate) fn whole(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            below: None,
        }
    }

    /// The path, as messages name it.
    pub(crate) fn full(&self) -> PathBuf {
        match &self.below {
            Some(below) => self.path.join(&below.path),
            None => self.path.clone(),
        }
    }
}

/// What a container may see and do besides its volumes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Restrictions {
    /// All files but those of volumes are read-only.
    pub(crate) read_only_root: bool,
    /// Parts of `/proc` are hidden or read-only.
    pub(crate) masks_proc: bool,
}

/// A path that is walked from a folder without following symbolic links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Where it begins: a path that no container could change.
    pub(crate) from: PathBuf,
    /// The path from there; may be empty.
    pub(crate) below: PathBuf,
}

/// One thing to do in the child, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Keep what follows from other mount namespaces.
    Private,
    /// An empty file system.
    Tmpfs { at: PathBuf, mode: u32 },
    /// A folder; it may be there already.
    Folder { at: PathBuf },
    /// An empty file to bind over; it may be there already.
    File { at: PathBuf },
    /// A symbolic link.
    Link { to: PathBuf, at: PathBuf },
    /// `from` appears at `at` too. A failure of an optional one is passed over.
    Bind {
        from: PathBuf,
        at: PathBuf,
        optional: bool,
    },
    /// What is missing of a path is made: folders, and what it is itself.
    Make { walk: Walk, kind: Found, mode: u32 },
    /// What is at one walk's end appears at the other's, too.
    Attach {
        from: Walk,
        at: Walk,
        read_only: bool,
        /// Where this process's descriptors are, for kernels that need paths.
        descriptors: PathBuf,
    },
    /// No writing through the mount at this path.
    ReadOnly { at: PathBuf },
    /// No writing through this mount and all below it.
    ReadOnlyTree { at: PathBuf },
    /// Writing again through this mount, if it is one.
    Writable { at: PathBuf },
    /// Hides a file or folder, if it is there.
    Mask { at: PathBuf },
    /// No writing to a file or folder, if it is there.
    Protect { at: PathBuf },
    /// The process files of the PID namespace, where the kernel allows it.
    Processes { at: PathBuf },
    /// Makes `root` the root, the old one visible at `old` (below `root`).
    Pivot { root: PathBuf, old: PathBuf },
    /// Makes `root` the root and lets go of the old one.
    Enter { root: PathBuf },
}

/// Why a view cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ViewError {
    /// A mount path that is none.
    #[error("mountPath {0:?} must be an absolute path without \"..\"")]
    BadPath(PathBuf),
    /// A folder over a file or the other way round.
    #[error(
        "mountPath {target:?} is a {there} on this machine and the volume is a {wanted}; \
         choose another mountPath"
    )]
    OtherKind {
        /// The mount path.
        target: PathBuf,
        /// What is there.
        there: &'static str,
        /// What the volume is.
        wanted: &'static str,
    },
    /// The folder to cover cannot be read.
    #[error(
        "mountPath {target:?} does not exist on this machine and {folder:?}, in which it would \
         be made, cannot be read: {source}; choose a mountPath elsewhere"
    )]
    Unreadable {
        /// The mount path.
        target: PathBuf,
        /// The folder above.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A volume's source cannot be found.
    #[error("the volume's folder {path:?} cannot be found: {source}")]
    Source {
        /// The source.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The operations that show `mounts`; `base` is an existing empty folder to
/// build a new root on. Sources and `base` are paths on the machine.
pub(crate) fn plan(
    mounts: &[Mount],
    restrictions: Restrictions,
    machine: &dyn Machine,
    base: &Path,
) -> Result<Vec<Operation>, ViewError> {
    let placed = place(mounts, machine)?;
    let hidden = |source: &Source| {
        let full = source.full();
        placed.iter().any(|mount| full.starts_with(&mount.target))
    };
    // A new root also keeps what is read-only apart from the volumes' sources.
    let in_place = !restrictions.read_only_root
        && placed.iter().all(|mount| mount.cover.is_none())
        && !placed.iter().any(|mount| hidden(&mount.source));

    let mut operations = vec![Operation::Private];
    let (old, new) = if in_place {
        (PathBuf::from("/"), PathBuf::from("/"))
    } else {
        operations.push(Operation::Tmpfs {
            at: base.to_owned(),
            mode: 0o755,
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
        cover(&placed, machine, &old, &new, &mut operations)?;
        (old, new)
    };
    for mount in placed.iter().filter(|mount| mount.cover.is_some()) {
        make_path(&new, &mount.target, mount.kind, &mut operations);
    }
    if restrictions.read_only_root {
        restrict::read_only(&new, &mut operations);
    }
    for mount in &placed {
        attach(mount, &placed, &old, &new, &mut operations);
    }
    operations.push(Operation::Processes {
        at: below(&new, Path::new("/proc")),
    });
    if restrictions.masks_proc {
        restrict::mask(&new, &mut operations);
    }
    for mount in placed.iter().filter(|mount| mount.is_plain()) {
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

/// Makes a volume appear: by paths where no container could have changed one,
/// else by descriptors.
fn attach(
    mount: &Placed,
    placed: &[Placed],
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
        // The mount point, in the volume that it is in.
        let inner = &placed[nest.inner];
        let rest = relative(&mount.target, &inner.target);
        operations.push(Operation::Make {
            walk: walk(&inner.source, &rest),
            kind: mount.kind,
            mode: 0o755,
        });
        let outer = &placed[nest.outer].target;
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
