//! PyTorch: `init_process_group("…", init_method="env://")`, and torchrun.

use super::{Job, RenderError, Variables};
use crate::address::split;

/// The default port of torchrun's rendezvous.
pub(super) const PORT: u16 = 29500;

/// Returns PyTorch's environment variables for one task: the master's address and
/// the task's rank, for a program that calls `init_process_group`, and the same for
/// `torchrun`, which starts one process per accelerator (`PET_NPROC_PER_NODE`).
///
/// Ranks start with the leader's role; the other roles follow in sorted order. In
/// `MASTER_ADDR`, an IPv6 address has no brackets.
///
/// # Errors
/// [`RenderError::Spec`] if the task does not exist.
///
/// ```
/// use longshore_resolver::{ClusterSpec, render::{Job, torch}};
/// let mut spec = ClusterSpec::new();
/// spec.push("worker", "[fd00::2]:29500");
/// spec.push("master", "[fd00::1]:29500");
/// let variables = torch(&Job::new(spec), "worker", 0).unwrap();
/// let get = |name| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| value.as_str());
/// assert_eq!(get("MASTER_ADDR"), Some("fd00::1"));
/// assert_eq!((get("RANK"), get("WORLD_SIZE")), (Some("1"), Some("2")));
/// assert_eq!((get("PET_NODE_RANK"), get("PET_NNODES")), (Some("1"), Some("2")));
/// ```
pub fn torch(job: &Job, role: &str, index: u32) -> Result<Variables, RenderError> {
    let (leader, rank, world) = job.rank(role, index)?;
    let (host, port) = split(leader.address);
    let (host, port) = (host.to_owned(), port.unwrap_or(PORT).to_string());
    let (rank, world) = (rank.to_string(), world.to_string());
    let mut variables = vec![
        ("MASTER_ADDR", host.clone()),
        ("MASTER_PORT", port.clone()),
        ("WORLD_SIZE", world.clone()),
        ("RANK", rank.clone()),
        ("LOCAL_RANK", "0".to_owned()),
        ("LOCAL_WORLD_SIZE", "1".to_owned()),
        ("PET_MASTER_ADDR", host),
        ("PET_MASTER_PORT", port),
        ("PET_NNODES", world),
        ("PET_NODE_RANK", rank),
    ];
    if let Some(slots) = job.slots(role, index) {
        variables.push(("PET_NPROC_PER_NODE", slots.to_string()));
    }
    Ok(variables)
}
