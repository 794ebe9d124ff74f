//! Covered directories: rebuilt from the old root, with missing directories
//! created.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{Entry, FileKind, Machine, Operation, ViewError, resolve::ResolvedMount};

/// Rebuilds the root and covered directories from the old root.
pub(super) fn cover(
    resolved: &[ResolvedMount],
    machine: &dyn Machine,
    old: &Path,
    new: &Path,
    operations: &mut Vec<Operation>,
) -> Result<(), ViewError> {
    let mut covers: BTreeMap<&Path, &Path> = BTreeMap::new();
    for mount in resolved {
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
            group: None,
            size: None,
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

/// Creates the directories of `target` below `new`, and a file at the end if `target` is a file.
pub(super) fn make_path(
    new: &Path,
    target: &Path,
    kind: FileKind,
    operations: &mut Vec<Operation>,
) {
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
        operations.push(if last && kind == FileKind::File {
            Operation::File { at }
        } else {
            Operation::Folder { at }
        });
    }
}

pub(super) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}
