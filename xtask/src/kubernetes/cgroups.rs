//! The parent cgroups of the cluster's pods.

use std::{
    fs,
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use crate::run::Outcome;

/// The name of the parent cgroup in each hierarchy.
pub(super) const NAME: &str = "longshore-real";
const HIERARCHIES: &str = "/sys/fs/cgroup";

/// The roots of the hierarchies: one for each controller (cgroup v1), or a single one (v2).
fn roots() -> Vec<PathBuf> {
    let is_single = Path::new(HIERARCHIES).join("cgroup.controllers").exists();
    if is_single {
        return vec![PathBuf::from(HIERARCHIES)];
    }
    folders(Path::new(HIERARCHIES))
}

/// Creates the cgroup in each hierarchy.
pub(super) fn create() -> Outcome {
    for root in roots() {
        super::create_folder(&root.join(NAME))?;
    }
    Ok(())
}

/// Removes the cgroup and its children. Retries, as processes that are exiting delay this.
pub(super) fn remove() {
    for root in roots() {
        for _ in 0..50 {
            if remove_tree(&root.join(NAME)) {
                break;
            }
            sleep(Duration::from_millis(100));
        }
    }
}

fn remove_tree(group: &Path) -> bool {
    for inner in folders(group) {
        remove_tree(&inner);
    }
    fs::remove_dir(group).is_ok() || !group.exists()
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}
