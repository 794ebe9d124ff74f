//! Hostfiles for Open MPI, Horovod and DeepSpeed.

use super::Job;
use crate::address::split;

/// Renders a hostfile for Open MPI, Horovod and DeepSpeed: one line `host slots=N`
/// per host, in the order of the ranks. The number of slots is the number of
/// accelerators of the host's tasks; a task without accelerators counts as one
/// slot. Tasks on the same host share a line, because some readers reject duplicate
/// hosts. The file has no blank lines and no comments, because Horovod rejects
/// them. Horovod and Open MPI cannot read IPv6 addresses in any form.
///
/// ```
/// use longshore_resolver::{ClusterSpec, render::{Job, hostfile}};
/// let mut spec = ClusterSpec::new();
/// spec.push("worker", "10.0.0.2:22");
/// spec.push("launcher", "[fd00::1]:22");
/// let job = Job::new(spec).with_slots("worker", 0, 8);
/// assert_eq!(hostfile(&job), "fd00::1 slots=1\n10.0.0.2 slots=8\n");
/// ```
#[must_use]
pub fn hostfile(job: &Job) -> String {
    let mut hosts: Vec<(&str, u64)> = Vec::new();
    for task in job.ranked() {
        let (host, _) = split(task.address);
        let slots = job.slots(task.role, task.index).unwrap_or(1);
        match hosts.iter_mut().find(|(known, _)| *known == host) {
            Some((_, sum)) => *sum = sum.saturating_add(slots),
            None => hosts.push((host, slots)),
        }
    }
    let lines = hosts
        .iter()
        .map(|(host, slots)| format!("{host} slots={slots}\n"));
    lines.collect()
}
