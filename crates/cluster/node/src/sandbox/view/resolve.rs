//! Resolves mounts: targets and sources without links, and the directory to
//! cover if a target is missing.

use std::path::{Component, Path, PathBuf};

use super::{FileKind, Machine, Mount, Source, ViewError};

/// A mount with its target resolved.
pub(super) struct ResolvedMount {
    pub(super) source: Source,
    pub(super) kind: FileKind,
    pub(super) target: PathBuf,
    pub(super) read_only: bool,
    /// The directory to cover if the target does not exist on the machine.
    pub(super) cover: Option<PathBuf>,
    /// The volumes that contain the target.
    pub(super) nest: Option<Nest>,
}

/// The volumes that contain a mount's target, as indices.
pub(super) struct Nest {
    /// The outermost volume.
    pub(super) outer: usize,
    /// The volume with the mount point.
    pub(super) inner: usize,
}

impl ResolvedMount {
    /// Returns true if containers could not have changed any path of the mount.
    pub(super) fn is_plain(&self) -> bool {
        self.nest.is_none() && self.source.below.is_none()
    }
}

/// Resolves targets and sources, and sorts parents before children.
pub(super) fn resolve_mounts(
    mounts: &[Mount],
    machine: &dyn Machine,
) -> Result<Vec<ResolvedMount>, ViewError> {
    let mut sorted: Vec<&Mount> = mounts.iter().collect();
    sorted.sort_by_key(|mount| mount.target.components().count());
    let mut resolved: Vec<ResolvedMount> = Vec::with_capacity(sorted.len());
    for mount in sorted {
        let path = machine
            .resolve(&mount.source.path)
            .map_err(|source| ViewError::Source {
                path: mount.source.path.clone(),
                source,
            })?;
        let below = mount.source.below.clone();
        let kind = match &below {
            Some(below) => below.kind,
            None => machine.find(&path).unwrap_or(FileKind::Folder),
        };
        let source = Source { path, below };
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
        let depth = |index: &usize| resolved[*index].target.components().count();
        let around = || {
            let is_above = |index: &usize| {
                let other = &resolved[*index].target;
                target.starts_with(other) && target != *other
            };
            (0..resolved.len()).filter(is_above)
        };
        let ends = around().min_by_key(depth).zip(around().max_by_key(depth));
        let nest = ends.map(|(outer, inner)| Nest { outer, inner });
        let nested = nest.is_some();
        let missing = !rest.as_os_str().is_empty();
        let there = machine.find(&ancestor);
        let clash = |there, wanted| ViewError::OtherKind {
            target: target.clone(),
            there,
            wanted,
        };
        match (nested, missing, there, kind) {
            (true, ..) => {}
            (_, true, Some(FileKind::File), _) => return Err(clash("file", "folder")),
            (_, false, Some(FileKind::File), FileKind::Folder) => {
                return Err(clash("file", "folder"));
            }
            (_, false, Some(FileKind::Folder), FileKind::File) => {
                return Err(clash("folder", "file"));
            }
            _ => {}
        }
        let cover = (missing && !nested).then_some(ancestor);
        resolved.push(ResolvedMount {
            source,
            kind,
            target,
            read_only: mount.read_only,
            cover,
            nest,
        });
    }
    Ok(resolved)
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

/// Returns the deepest existing path at or above `path`, and the missing rest.
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
