//! Plans a container's view of the machine's files: which mounts make its
//! volumes appear at their mount paths. Pure; [`Machine`] says what is there.
//!
//! Where every mount path exists on the machine, volumes are bound over them in
//! the container's own mount namespace. Where one is missing, the deepest
//! folder above it that exists is covered by an empty tmpfs into which all its
//! entries are bound back and the missing folders made, so that nothing on the
//! machine changes. For a folder missing in `/`, that means a new root.

mod cover;
mod machine;
mod place;

use std::{
    io,
    path::{Path, PathBuf},
};

use cover::{below, cover, make_path};
pub(crate) use machine::{Entry, Found, Machine, ThisMachine};
use place::place;

/// A volume, or a part of it, that a container wants at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Where it is on the machine; exists.
    pub(crate) source: PathBuf,
    /// Where the container sees it; absolute.
    pub(crate) target: PathBuf,
    /// Whether the container may not write to it.
    pub(crate) read_only: bool,
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
    /// No writing through the mount at this path.
    ReadOnly { at: PathBuf },
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
    machine: &dyn Machine,
    base: &Path,
) -> Result<Vec<Operation>, ViewError> {
    let placed = place(mounts, machine)?;
    let hidden = |source: &Path| placed.iter().any(|mount| source.starts_with(&mount.target));
    let in_place = placed.iter().all(|mount| mount.cover.is_none())
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
    for mount in &placed {
        let at = below(&new, &mount.target);
        if mount.nested || mount.cover.is_some() {
            make_path(&new, &mount.target, mount.kind, &mut operations);
        }
        let from = below(&old, &mount.source);
        operations.push(Operation::Bind {
            from,
            at,
            optional: false,
        });
    }
    operations.push(Operation::Processes {
        at: below(&new, Path::new("/proc")),
    });
    for mount in placed.iter().filter(|mount| mount.read_only) {
        operations.push(Operation::ReadOnly {
            at: below(&new, &mount.target),
        });
    }
    if !in_place {
        operations.push(Operation::Enter { root: new });
    }
    Ok(operations)
}

#[cfg(test)]
mod tests;
