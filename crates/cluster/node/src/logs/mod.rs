//! Container logs. They are written from pipes with one record per line, and stored per pod,
//! container and restart until the pod, or the Job that controls it, is deleted.

mod kept;
mod limits;
mod log_file;
mod loss;
mod reader;
mod reading;
mod record;
mod retention;
mod segments;
mod store;
mod writer;

pub use kept::{KEPT_LOGS_LIMIT, kept_log_bytes};
pub(crate) use kept::{KeptPod, keep};
pub use limits::LogLimits;
pub use reader::LogReader;
pub(crate) use store::{LogStore, Progress};
pub(crate) use writer::{LogWriter, capture};

#[cfg(test)]
mod tests;
