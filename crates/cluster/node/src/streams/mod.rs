//! Streams of running containers: their own streams, and the streams of commands that run inside
//! them.

mod attach;
mod collect;
mod exec;
mod running;

pub(crate) use attach::Attachment;
pub(crate) use collect::{CollectError, collect};
pub(crate) use exec::exec;
pub(crate) use running::{Container, ContainerProcess, RunningContainers};
