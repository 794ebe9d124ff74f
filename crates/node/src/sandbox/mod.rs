//! Runs a command in a container of its own: session, mount, PID and UTS
//! namespaces where the kernel allows them, an init that reaps, and death with
//! the agent.

mod child;
mod command;
mod features;
mod filter;
mod init;
mod privileges;
mod process;
mod spawner;
mod start_error;
mod steps;
mod stream;
mod until_end;
pub(crate) mod view;

#[cfg(test)]
mod tests;

pub(crate) use command::Command;
pub(crate) use privileges::Privileges;
pub(crate) use process::Process;
pub(crate) use spawner::Spawner;
pub(crate) use start_error::StartError;
pub(crate) use stream::{Input, Output, Stream, Terminal, Wiring};
pub(crate) use until_end::UntilEnd;
