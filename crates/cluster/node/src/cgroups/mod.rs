//! Enforces the CPU and memory limits of containers by cgroups of version 1 or 2.
//!
//! The agent creates a group below its own cgroup, in this group one for each pod that requests or
//! limits CPU or memory, and in the pod's group one for each run of a container. A container's
//! first process joins its group before it executes anything. Groups are removed with their
//! container, pod or agent. The next agent removes the groups of an agent that was killed.
//!
//! If the agent may not create groups, pods run without limits, which an event of the Node reports
//! once. The agent writes the files of the hierarchies itself, which takes less code than adapting
//! a library for container runtimes.

mod available;
mod group;
mod hierarchy;
mod leftovers;
mod limits;
mod settings;
mod usage;

#[cfg(test)]
mod tests;

pub(crate) use available::{Cgroups, Unavailable};
pub(crate) use group::{Group, Shown};
pub(crate) use limits::Limits;
