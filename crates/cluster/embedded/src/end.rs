//! The end of a cluster. The file `end.json` stores it for users and for the next cluster.

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    files::{self, Durability},
    layout::Layout,
    process,
};

/// The end of a cluster's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// The process ID.
    pub pid: u32,
    /// The time at which the process started, in clock ticks since boot.
    pub process_start: u64,
    /// The time at which the cluster was asked to stop.
    pub at: jiff::Timestamp,
    /// The command or signal that stopped it, for example `longshore down` or
    /// `SIGTERM`.
    pub cause: String,
}

impl End {
    /// Describes the end of a process that is asked to stop now.
    pub(crate) fn now(pid: u32, process_start: u64, cause: &str) -> Self {
        Self {
            pid,
            process_start,
            at: jiff::Timestamp::now(),
            cause: cause.to_owned(),
        }
    }

    /// Describes the end of this process.
    pub(crate) fn of_this(cause: &str) -> Self {
        let pid = std::process::id();
        Self::now(pid, process::start_ticks(pid).unwrap_or_default(), cause)
    }

    /// Returns a sentence: `the cluster was stopped by SIGTERM`.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self.cause.contains(' ') {
            true => format!("the cluster was stopped by `{}`", self.cause),
            false => format!("the cluster was stopped by {}", self.cause),
        }
    }

    /// Returns true if this describes the given process.
    pub(crate) fn is_of(&self, pid: u32, process_start: u64) -> bool {
        (self.pid, self.process_start) == (pid, process_start)
    }

    pub(crate) fn read(layout: &Layout) -> Result<Option<Self>, Error> {
        let bytes = files::read_optional(&layout.end())?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    pub(crate) fn write(&self, layout: &Layout) -> Result<(), Error> {
        let text = serde_json::to_vec(self).map_err(Error::part("record"))?;
        files::write_private(&layout.end(), &text, Durability::Durable)
    }

    /// Writes the file, unless the command that stopped the process has already
    /// written the cause.
    pub(crate) fn write_unless_known(&self, layout: &Layout) -> Result<(), Error> {
        match Self::read(layout)? {
            Some(known) if known.is_of(self.pid, self.process_start) => Ok(()),
            _ => self.write(layout),
        }
    }
}
