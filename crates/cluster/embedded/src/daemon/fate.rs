//! Determines how the cluster of a record ended, or that it is running.

use super::{End, Record};
use crate::{Error, layout::Layout};

/// The fate of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The process is running.
    Alive,
    /// A command or a signal stopped it.
    Stopped(End),
    /// The process exited without writing a cause, for example after `kill -9`.
    Died,
}

/// Returns the fate of the cluster of a record.
///
/// # Errors
/// A file cannot be read.
pub fn fate(layout: &Layout, record: &Record) -> Result<Fate, Error> {
    if record.is_alive() {
        return Ok(Fate::Alive);
    }
    let end = End::read(layout)?.filter(|end| end.is_of(record.pid, record.process_start));
    Ok(end.map_or(Fate::Died, Fate::Stopped))
}
