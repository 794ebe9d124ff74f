//! How a cluster ended: `end.json`, for those who used it and for the next one.

use serde::{Deserialize, Serialize};

use super::{Record, record};
use crate::{Error, files, layout::Layout};

/// How a cluster's process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// The process.
    pub pid: u32,
    /// When that process began, see [`Record::process_start`].
    pub process_start: u64,
    /// When it was asked to end.
    pub at: jiff::Timestamp,
    /// What made it end, as in `longshore down` or `SIGTERM`.
    pub cause: String,
}

impl End {
    pub(super) fn of(record: &Record, cause: &str) -> Self {
        Self {
            pid: record.pid,
            process_start: record.process_start,
            at: jiff::Timestamp::now(),
            cause: cause.to_owned(),
        }
    }

    /// Of this process.
    pub(super) fn of_this(cause: &str) -> Self {
        let pid = std::process::id();
        Self {
            pid,
            process_start: record::process_start(pid).unwrap_or_default(),
            at: jiff::Timestamp::now(),
            cause: cause.to_owned(),
        }
    }

    /// The end in a sentence: `the cluster was stopped by SIGTERM`.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self.cause.contains(' ') {
            true => format!("the cluster was stopped by `{}`", self.cause),
            false => format!("the cluster was stopped by {}", self.cause),
        }
    }

    fn is_of(&self, record: &Record) -> bool {
        (self.pid, self.process_start) == (record.pid, record.process_start)
    }

    pub(crate) fn read(layout: &Layout) -> Result<Option<Self>, Error> {
        let bytes = files::read_optional(&layout.end())?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    pub(super) fn write(&self, layout: &Layout) -> Result<(), Error> {
        let text = serde_json::to_vec(self).map_err(Error::part("record"))?;
        files::write_private(&layout.end(), &text)
    }

    /// Writes it, unless whoever asked for the end has said why already.
    pub(super) fn write_unless_known(&self, layout: &Layout) -> Result<(), Error> {
        match Self::read(layout)? {
            Some(known) if (known.pid, known.process_start) == (self.pid, self.process_start) => {
                Ok(())
            }
            _ => self.write(layout),
        }
    }
}

/// What became of a cluster that served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// Its process lives.
    Alive,
    /// It was stopped.
    Stopped(End),
    /// Its process ended without a word, as by `kill -9`.
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
    let end = End::read(layout)?.filter(|end| end.is_of(record));
    Ok(end.map_or(Fate::Died, Fate::Stopped))
}
