//! Runs a command in a container of its own: session, mount, PID and UTS
//! namespaces where the kernel allows them, an init that reaps, and death with
//! the agent.

mod child;
mod features;
mod filter;
mod init;
mod privileges;
mod process;
mod spawner;
mod stream;
mod until_end;
pub(crate) mod view;

#[cfg(test)]
mod tests;

pub(crate) use privileges::Privileges;
pub(crate) use process::{Process, StartError};
pub(crate) use spawner::{Command, Spawner};
pub(crate) use stream::{Input, Output, Terminal, Wiring};
pub(crate) use until_end::UntilEnd;
