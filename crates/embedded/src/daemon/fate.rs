//! What became of a cluster that served.

use super::{End, Record};
use crate::{Error, layout::Layout};

/// What became of a cluster that served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// Its process lives.
    Alive,
    /// It was stopped.
    Stopped(End),
    /// Its process ended without writing why, as by `kill -9`.
    Died,
}

/// What became of the cluster of a record.
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
