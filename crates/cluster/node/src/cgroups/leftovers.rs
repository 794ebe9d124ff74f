//! Removes the groups of agents that were killed.

use std::{fs, path::Path};

use super::group;

/// The prefix of the names of agents' groups.
pub(super) const PREFIX: &str = "longshore-";
/// The name of the group of the agent itself, below the cgroup in which the agent was started.
pub(super) const AGENT: &str = "longshore.agent";

/// Removes the groups in `folder` that no running agent has locked. The processes in them have
/// ended with their agent.
pub(super) fn remove(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_agents = entry.file_name().to_str().is_some_and(is_agents_name);
        if !is_agents || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        // The lock is held until the group is removed, so that no other agent interferes.
        if let Ok(Some(_lock)) = group::lock(&path)
            && !group::remove(&path)
        {
            tracing::debug!(folder = %path.display(), "a cgroup of an earlier agent remains");
        }
    }
}

/// Returns true if an agent's group has this name. Units of systemd have other names.
fn is_agents_name(name: &str) -> bool {
    let numbers = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split_once('-'));
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}
