//! The control groups below which the cluster's pods are.

use std::{
    fs,
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use crate::run::Outcome;

/// The name of the group above all others, in each hierarchy.
pub(super) const NAME: &str = "longshore-real";
const HIERARCHIES: &str = "/sys/fs/cgroup";

/// The roots of the hierarchies: one for each controller, or a single one.
fn roots() -> Vec<PathBuf> {
    let is_single = Path::new(HIERARCHIES).join("cgroup.controllers").exists();
    if is_single {
        return vec![PathBuf::from(HIERARCHIES)];
    }
    folders(Path::new(HIERARCHIES))
}

/// Makes the group in each of them.
pub(super) fn make() -> Outcome {
    for root in roots() {
        super::make_folder(&root.join(NAME))?;
    }
    Ok(())
}

/// Removes the group with all below it. Processes that have just ended may hold one up.
pub(super) fn remove() {
    for root in roots() {
        for _ in 0..50 {
            if remove_below(&root.join(NAME)) {
                break;
            }
            sleep(Duration::from_millis(100));
        }
    }
}

fn remove_below(group: &Path) -> bool {
    for inner in folders(group) {
        remove_below(&inner);
    }
    fs::remove_dir(group).is_ok() || !group.exists()
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}
