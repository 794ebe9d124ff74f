//! Enforces the CPU and memory limits of containers by cgroups, of version 1 or 2.
//!
//! The agent creates a group of its own below the cgroup that it runs in, in it a group for each
//! pod that requests or limits CPU or memory, and in that a group for each run of a container. A
//! container's first process joins its group before it executes anything. Groups are removed
//! with what they were created for; those of an agent that was killed are removed when the next
//! agent starts.
//!
//! Where the agent may not create groups, pods run without limits, and an event of the Node says
//! so once. Two file hierarchies are all that is needed: writing their files takes less code
//! than adapting a library for container runtimes.

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
