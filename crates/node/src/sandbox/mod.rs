//! Runs a command in a container of its own: session, mount, PID and UTS
//! namespaces where the kernel allows them, an init that reaps, and death with
//! the agent.

mod child;
mod features;
mod process;
mod spawner;
pub(crate) mod view;

#[cfg(test)]
mod tests;

pub(crate) use process::Process;
pub(crate) use spawner::{Command, Spawner};
