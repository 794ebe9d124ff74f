//! Finds out what happened to a cluster.

use super::{End, Record};
use crate::{Error, layout::Layout};

/// What happened to a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// Its process is running.
    Alive,
    /// A command or a signal stopped it.
    Stopped(End),
    /// Its process exited without writing a cause, for example after `kill -9`.
    Died,
}

/// Returns what happened to the cluster of a record.
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
