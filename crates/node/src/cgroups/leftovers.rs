//! Removes the groups of agents that were killed.

use std::{fs, path::Path};

use super::group;

/// The beginning of the names of agents' groups.
pub(super) const PREFIX: &str = "longshore-";
/// The group of the agent itself, below the cgroup in which it was started.
pub(super) const AGENT: &str = "longshore.agent";

/// Depth of the groups of an agent: its own, those of pods, and those of containers.
const DEPTH: u32 = 3;

/// Removes the groups in `folder` that no living agent has locked. The processes in them have
/// ended with their agent.
pub(super) fn remove(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_agents = entry.file_name().to_str().is_some_and(is_agents_name);
        if !is_agents || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        // The lock is held until the group is removed, so that no other agent interferes.
        if let Ok(Some(_lock)) = group::lock(&path) {
            remove_tree(&path, DEPTH);
        }
    }
}

/// Whether the name is that of an agent's group. Units of systemd have other names.
fn is_agents_name(name: &str) -> bool {
    let numbers = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split_once('-'));
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// Removes a group and those in it. Files of cgroups cannot be removed, and need not be.
fn remove_tree(folder: &Path, depth: u32) {
    if depth > 1 {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                remove_tree(&entry.path(), depth - 1);
            }
        }
    }
    if let Err(error) = fs::remove_dir(folder) {
        tracing::debug!(folder = %folder.display(), %error, "a cgroup of an earlier agent remains");
    }
}
