//! Plans a container's view of the machine's files: which mounts make its
//! volumes appear at their mount paths. Pure; [`Machine`] says what is there.
//!
//! Where every mount path exists on the machine, volumes are bound over them in
//! the container's own mount namespace. Where one is missing, the deepest
//! folder above it that exists is covered by an empty tmpfs into which all its
//! entries are bound back and the missing folders made, so that nothing on the
//! machine changes. For a folder missing in `/`, that means a new root.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    io,
    path::{Component, Path, PathBuf},
};

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A folder.
    Folder,
    /// Anything else.
    File,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A folder.
    Folder,
    /// A file, socket or device.
    File,
    /// A symbolic link and where it points.
    Link(PathBuf),
}

/// The machine's files, as far as planning asks.
pub(crate) trait Machine {
    /// What stands at `path`, links followed; `None` when nothing does.
    fn find(&self, path: &Path) -> Option<Found>;
    /// The path without links, of a path that exists.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf>;
    /// What is in a folder.
    fn entries(&self, folder: &Path) -> io::Result<Vec<(OsString, Entry)>>;
    /// Permission bits of a folder.
    fn mode(&self, folder: &Path) -> u32;
}

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

/// A mount with its target freed of links.
struct Placed {
    source: PathBuf,
    kind: Found,
    target: PathBuf,
    read_only: bool,
    /// The folder to cover, when the target is missing on the machine.
    cover: Option<PathBuf>,
    /// Whether it lies in a volume that is mounted above it.
    nested: bool,
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

/// Frees targets and sources of links, sorts parents before children.
fn place(mounts: &[Mount], machine: &dyn Machine) -> Result<Vec<Placed>, ViewError> {
    let mut sorted: Vec<&Mount> = mounts.iter().collect();
    sorted.sort_by_key(|mount| mount.target.components().count());
    let mut placed: Vec<Placed> = Vec::with_capacity(sorted.len());
    for mount in sorted {
        let source = machine
            .resolve(&mount.source)
            .map_err(|source| ViewError::Source {
                path: mount.source.clone(),
                source,
            })?;
        let kind = machine.find(&source).unwrap_or(Found::Folder);
        let wanted = normal(&mount.target)?;
        let (ancestor, rest) = deepest(&wanted, machine);
        let ancestor = machine
            .resolve(&ancestor)
            .map_err(|source| ViewError::Unreadable {
                target: wanted.clone(),
                folder: ancestor.clone(),
                source,
            })?;
        let target = if rest.as_os_str().is_empty() {
            ancestor.clone()
        } else {
            ancestor.join(&rest)
        };
        let nested = placed
            .iter()
            .any(|other| target.starts_with(&other.target) && target != other.target);
        let missing = !rest.as_os_str().is_empty();
        let there = machine.find(&ancestor);
        let clash = |there, wanted| ViewError::OtherKind {
            target: target.clone(),
            there,
            wanted,
        };
        match (nested, missing, there, kind) {
            (true, ..) => {}
            (_, true, Some(Found::File), _) => return Err(clash("file", "folder")),
            (_, false, Some(Found::File), Found::Folder) => return Err(clash("file", "folder")),
            (_, false, Some(Found::Folder), Found::File) => return Err(clash("folder", "file")),
            _ => {}
        }
        let cover = (missing && !nested).then_some(ancestor);
        placed.push(Placed {
            source,
            kind,
            target,
            read_only: mount.read_only,
            cover,
            nested,
        });
    }
    Ok(placed)
}

fn normal(path: &Path) -> Result<PathBuf, ViewError> {
    if !path.is_absolute() {
        return Err(ViewError::BadPath(path.to_owned()));
    }
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => return Err(ViewError::BadPath(path.to_owned())),
            _ => {}
        }
    }
    Ok(clean)
}

/// The deepest existing path at or above `path`, and what is missing below it.
fn deepest(path: &Path, machine: &dyn Machine) -> (PathBuf, PathBuf) {
    let mut ancestor = path;
    loop {
        if machine.find(ancestor).is_some() {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return (ancestor.to_owned(), rest.to_owned());
        }
        match ancestor.parent() {
            Some(parent) => ancestor = parent,
            None => {
                return (
                    PathBuf::from("/"),
                    path.strip_prefix("/").unwrap_or(path).to_owned(),
                );
            }
        }
    }
}

/// Root and covered folders, rebuilt from the old root.
fn cover(
    placed: &[Placed],
    machine: &dyn Machine,
    old: &Path,
    new: &Path,
    operations: &mut Vec<Operation>,
) -> Result<(), ViewError> {
    let mut covers: BTreeMap<&Path, &Path> = BTreeMap::new();
    for mount in placed {
        if let Some(folder) = &mount.cover {
            covers.entry(folder).or_insert(&mount.target);
        }
    }
    if !covers.contains_key(Path::new("/")) {
        let bind = Operation::Bind {
            from: old.to_owned(),
            at: new.to_owned(),
            optional: false,
        };
        operations.push(bind);
    }
    for (folder, target) in covers {
        let entries = machine
            .entries(folder)
            .map_err(|source| ViewError::Unreadable {
                target: target.to_owned(),
                folder: folder.to_owned(),
                source,
            })?;
        let (from, at) = (below(old, folder), below(new, folder));
        operations.push(Operation::Tmpfs {
            at: at.clone(),
            mode: machine.mode(folder),
        });
        for (name, entry) in entries {
            let place = at.join(&name);
            match entry {
                Entry::Link(to) => {
                    operations.push(Operation::Link { to, at: place });
                    continue;
                }
                Entry::Folder => operations.push(Operation::Folder { at: place.clone() }),
                Entry::File => operations.push(Operation::File { at: place.clone() }),
            }
            let from = from.join(&name);
            operations.push(Operation::Bind {
                from,
                at: place,
                optional: true,
            });
        }
    }
    Ok(())
}

/// Makes the folders of `target` below `new`, and a file last if it is one.
fn make_path(new: &Path, target: &Path, kind: Found, operations: &mut Vec<Operation>) {
    let made: BTreeSet<PathBuf> = operations
        .iter()
        .filter_map(|operation| match operation {
            Operation::Folder { at } | Operation::File { at } => Some(at.clone()),
            _ => None,
        })
        .collect();
    let mut path = PathBuf::from("/");
    let names: Vec<_> = target.iter().skip(1).collect();
    for (position, name) in names.iter().enumerate() {
        path.push(name);
        let at = below(new, &path);
        let last = position + 1 == names.len();
        if made.contains(&at) {
            continue;
        }
        operations.push(if last && kind == Found::File {
            Operation::File { at }
        } else {
            Operation::Folder { at }
        });
    }
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The machine this runs on.
pub(crate) struct ThisMachine;

impl Machine for ThisMachine {
    fn find(&self, path: &Path) -> Option<Found> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(if metadata.is_dir() {
            Found::Folder
        } else {
            Found::File
        })
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn entries(&self, folder: &Path) -> io::Result<Vec<(OsString, Entry)>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let what = if kind.is_symlink() {
                Entry::Link(std::fs::read_link(entry.path())?)
            } else if kind.is_dir() {
                Entry::Folder
            } else {
                Entry::File
            };
            entries.push((entry.file_name(), what));
        }
        Ok(entries)
    }

    fn mode(&self, folder: &Path) -> u32 {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(folder).map_or(0o755, |metadata| metadata.mode() & 0o7777)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Files by path; `None` is a folder, `Some(link)` a link, "" a file.
    struct Fake(BTreeMap<PathBuf, Option<&'static str>>);

    impl Fake {
        fn new(paths: &[(&str, Option<&'static str>)]) -> Self {
            Self(
                paths
                    .iter()
                    .map(|(path, what)| (PathBuf::from(path), *what))
                    .collect(),
            )
        }
    }

    impl Machine for Fake {
        fn find(&self, path: &Path) -> Option<Found> {
            match self.0.get(&self.resolve(path).ok()?)? {
                None => Some(Found::Folder),
                Some(_) => Some(Found::File),
            }
        }
        fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
            let mut clean = PathBuf::from("/");
            for name in path.iter().skip(1) {
                clean.push(name);
                if let Some(Some(link)) = self.0.get(&clean)
                    && !link.is_empty()
                {
                    clean = PathBuf::from(link);
                }
            }
            if self.0.contains_key(&clean) {
                Ok(clean)
            } else {
                Err(io::ErrorKind::NotFound.into())
            }
        }
        fn entries(&self, folder: &Path) -> io::Result<Vec<(OsString, Entry)>> {
            let inside = self
                .0
                .iter()
                .filter(|(path, _)| path.parent() == Some(folder));
            Ok(inside
                .map(|(path, what)| {
                    let entry = match what {
                        None => Entry::Folder,
                        Some("") => Entry::File,
                        Some(link) => Entry::Link(PathBuf::from(link)),
                    };
                    (path.file_name().unwrap().to_owned(), entry)
                })
                .collect())
        }
        fn mode(&self, _: &Path) -> u32 {
            0o755
        }
    }

    fn machine() -> Fake {
        Fake::new(&[
            ("/", None),
            ("/bin", Some("/usr/bin")),
            ("/etc", None),
            ("/etc/hosts", Some("")),
            ("/etc/ssl", None),
            ("/proc", None),
            ("/run", None),
            ("/tmp", None),
            ("/usr", None),
            ("/usr/bin", None),
            ("/var", None),
            ("/var/run", Some("/run")),
            ("/v", None),
            ("/v/a", None),
            ("/v/b", None),
            ("/v/file", Some("")),
            ("/tmp/inside", None),
        ])
    }

    fn mount(source: &str, target: &str) -> Mount {
        Mount {
            source: source.into(),
            target: target.into(),
            read_only: false,
        }
    }

    fn bind(from: &str, at: &str) -> Operation {
        Operation::Bind {
            from: from.into(),
            at: at.into(),
            optional: false,
        }
    }

    #[test]
    fn existing_paths_are_bound_in_place() {
        let read_only = Mount {
            read_only: true,
            ..mount("/v/file", "/etc/hosts")
        };
        let plan = plan(&[read_only], &machine(), Path::new("/v")).unwrap();
        assert_eq!(
            plan,
            [
                Operation::Private,
                bind("/v/file", "/etc/hosts"),
                Operation::Processes { at: "/proc".into() },
                Operation::ReadOnly {
                    at: "/etc/hosts".into()
                },
            ]
        );
    }

    #[test]
    fn a_folder_missing_in_the_root_makes_a_new_root() {
        let plan = plan(&[mount("/v/a", "/data/in")], &machine(), Path::new("/v/b")).unwrap();
        assert!(plan.contains(&Operation::Tmpfs {
            at: "/new".into(),
            mode: 0o755
        }));
        assert!(plan.contains(&Operation::Link {
            to: "/usr/bin".into(),
            at: "/new/bin".into()
        }));
        assert!(plan.contains(&Operation::Folder {
            at: "/new/data".into()
        }));
        assert!(plan.contains(&Operation::Folder {
            at: "/new/data/in".into()
        }));
        assert!(plan.contains(&bind("/old/v/a", "/new/data/in")));
        assert_eq!(
            plan.last(),
            Some(&Operation::Enter {
                root: "/new".into()
            })
        );
    }

    #[test]
    fn a_folder_missing_deeper_covers_only_its_ancestor() {
        let plan = plan(
            &[mount("/v/a", "/etc/app/conf")],
            &machine(),
            Path::new("/v/b"),
        )
        .unwrap();
        assert!(plan.contains(&bind("/old", "/new")));
        assert!(plan.contains(&Operation::Tmpfs {
            at: "/new/etc".into(),
            mode: 0o755
        }));
        let back = Operation::Bind {
            from: "/old/etc/ssl".into(),
            at: "/new/etc/ssl".into(),
            optional: true,
        };
        assert!(plan.contains(&back));
        assert!(!plan.contains(&Operation::Tmpfs {
            at: "/new".into(),
            mode: 0o755
        }));
    }

    #[test]
    fn links_above_a_missing_path_are_followed() {
        let mounts = [mount("/v/a", "/var/run/secrets/x")];
        let plan = plan(&mounts, &machine(), Path::new("/v/b")).unwrap();
        assert!(plan.contains(&bind("/old/v/a", "/new/run/secrets/x")));
    }

    #[test]
    fn volumes_in_volumes_come_after_and_get_a_mount_point() {
        let mounts = [
            mount("/v/file", "/etc/ssl/deep/f"),
            mount("/v/a", "/etc/ssl"),
        ];
        let plan = plan(&mounts, &machine(), Path::new("/v/b")).unwrap();
        let outer = plan
            .iter()
            .position(|op| *op == bind("/v/a", "/etc/ssl"))
            .unwrap();
        let folder = Operation::Folder {
            at: "/etc/ssl/deep".into(),
        };
        let folder = plan.iter().position(|op| *op == folder).unwrap();
        let file = Operation::File {
            at: "/etc/ssl/deep/f".into(),
        };
        let file = plan.iter().position(|op| *op == file).unwrap();
        let inner = plan
            .iter()
            .position(|op| *op == bind("/v/file", "/etc/ssl/deep/f"))
            .unwrap();
        assert!(outer < folder && folder < file && file < inner);
    }

    #[test]
    fn a_mount_that_hides_a_source_goes_through_the_old_root() {
        let mounts = [mount("/v/a", "/tmp"), mount("/tmp/inside", "/etc/ssl")];
        let plan = plan(&mounts, &machine(), Path::new("/v/b")).unwrap();
        assert!(plan.contains(&bind("/old/tmp/inside", "/new/etc/ssl")));
    }

    #[test]
    fn bad_paths_and_other_kinds_are_refused() {
        let base = Path::new("/v/b");
        let refused = |source: &str, target: &str| {
            plan(&[mount(source, target)], &machine(), base).unwrap_err()
        };
        assert!(matches!(refused("/v/a", "data"), ViewError::BadPath(_)));
        assert!(matches!(refused("/v/a", "/a/../b"), ViewError::BadPath(_)));
        assert!(matches!(
            refused("/v/a", "/etc/hosts"),
            ViewError::OtherKind { .. }
        ));
        assert!(matches!(
            refused("/v/file", "/etc"),
            ViewError::OtherKind { .. }
        ));
        assert!(matches!(
            refused("/v/a", "/etc/hosts/below"),
            ViewError::OtherKind { .. }
        ));
        assert!(matches!(
            refused("/v/none", "/etc"),
            ViewError::Source { .. }
        ));
    }
}
