//! Shows a container its own cgroup at the usual path instead of the machine's cgroups, as
//! container runtimes do.

use std::path::{Path, PathBuf};

use super::{Operation, Restrictions, cover::below};

/// The path at which programs expect cgroups.
const ROOT: &str = "/sys/fs/cgroup";

/// Returns true if a volume at this path and the cgroups would hide each other.
pub(super) fn overlaps(target: &Path) -> bool {
    target.starts_with("/sys") || Path::new("/sys").starts_with(target)
}

/// Mounts the directories of the container's cgroup at the paths of the hierarchies. `stage` is a
/// directory on which nothing is mounted.
pub(super) fn show(
    restrictions: &Restrictions<'_>,
    old: &Path,
    new: &Path,
    stage: &Path,
    operations: &mut Vec<Operation>,
) {
    let shown = restrictions.cgroups;
    if shown.is_empty() || !shown.iter().all(|shown| shown.mount.starts_with(ROOT)) {
        return;
    }
    let root = below(new, Path::new(ROOT));
    let mut mounts = vec![root.clone()];
    operations.push(Operation::Folder {
        at: stage.to_owned(),
    });
    let bind = |from: PathBuf, at: PathBuf| Operation::Bind {
        from,
        at,
        optional: false,
    };
    // With only version 2, its hierarchy is mounted at this path.
    if let Some(whole) = shown.iter().find(|shown| shown.mount == Path::new(ROOT)) {
        operations.push(bind(below(old, &whole.folder), stage.to_owned()));
    } else {
        operations.push(Operation::Tmpfs {
            at: stage.to_owned(),
            mode: 0o755,
            group: None,
            size: None,
        });
        for shown in shown {
            let Some(name) = shown.mount.strip_prefix(ROOT).ok().and_then(Path::to_str) else {
                continue;
            };
            operations.push(Operation::Folder {
                at: stage.join(name),
            });
            operations.push(bind(below(old, &shown.folder), stage.join(name)));
            mounts.push(root.join(name));
            // Several controllers in a hierarchy are also found by their own names.
            for controller in name.split(',').filter(|controller| *controller != name) {
                operations.push(Operation::Link {
                    to: name.into(),
                    at: stage.join(controller),
                });
            }
        }
    }
    operations.push(Operation::Detach { at: root.clone() });
    operations.push(bind(stage.to_owned(), root));
    operations.push(Operation::Detach {
        at: stage.to_owned(),
    });
    if !restrictions.writable_cgroups {
        operations.extend(mounts.into_iter().map(|at| Operation::ReadOnly { at }));
    }
}
