//! Logs of containers: written from their pipes, one record a line, kept per
//! pod, container and restart until the pod is deleted, and read back.

mod file;
mod place;
mod reader;
mod reading;
mod record;
mod retention;
mod writer;

pub(crate) use file::{LogStore, Progress};
pub use place::LogLimits;
pub use reader::{LogQuery, LogReadError, LogReader};
pub(crate) use record::Stream;
pub(crate) use writer::{LogWriter, capture};

#[cfg(test)]
mod rotation_tests;
