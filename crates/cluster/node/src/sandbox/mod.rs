//! Runs a command in its own container: a session, and mount, PID and UTS namespaces where the
//! kernel allows them, with an init that reaps processes. The container dies with the agent.

mod answering;
mod child;
mod command;
mod features;
mod filter;
mod init;
mod output_until_exit;
mod pipe;
mod pipe_caller;
mod pipe_threads;
mod ports;
mod privileges;
mod process;
mod spawner;
mod start_error;
mod steps;
mod stream;
pub(crate) mod view;
mod workers;

#[cfg(test)]
mod tests;

pub(crate) use command::Command;
pub(crate) use output_until_exit::OutputUntilExit;
pub(crate) use ports::PodPorts;
pub(crate) use privileges::Privileges;
pub(crate) use process::Process;
pub(crate) use spawner::Spawner;
pub(crate) use start_error::StartError;
pub(crate) use stream::{Input, Output, Stream, Terminal, Wiring};
