//! How a cluster ended: `end.json`, for its users and for the next cluster.

use serde::{Deserialize, Serialize};

use crate::{Error, files, layout::Layout, process};

/// How a cluster's process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// The process.
    pub pid: u32,
    /// When that process began, in the kernel's clock ticks since boot.
    pub process_start: u64,
    /// When it was asked to end.
    pub at: jiff::Timestamp,
    /// What made it end, as in `longshore down` or `SIGTERM`.
    pub cause: String,
}

impl End {
    /// Of a process that is asked to end now.
    pub(crate) fn now(pid: u32, process_start: u64, cause: &str) -> Self {
        Self {
            pid,
            process_start,
            at: jiff::Timestamp::now(),
            cause: cause.to_owned(),
        }
    }

    /// Of this process.
    pub(crate) fn of_this(cause: &str) -> Self {
        let pid = std::process::id();
        Self::now(pid, process::start_ticks(pid).unwrap_or_default(), cause)
    }

    /// The end in a sentence: `the cluster was stopped by SIGTERM`.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self.cause.contains(' ') {
            true => format!("the cluster was stopped by `{}`", self.cause),
            false => format!("the cluster was stopped by {}", self.cause),
        }
    }

    /// Whether it is the end of this process.
    pub(crate) fn is_of(&self, pid: u32, process_start: u64) -> bool {
        (self.pid, self.process_start) == (pid, process_start)
    }

    pub(crate) fn read(layout: &Layout) -> Result<Option<Self>, Error> {
        let bytes = files::read_optional(&layout.end())?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    pub(crate) fn write(&self, layout: &Layout) -> Result<(), Error> {
        let text = serde_json::to_vec(self).map_err(Error::part("record"))?;
        files::write_private(&layout.end(), &text)
    }

    /// Writes it, unless the command that asked for the end has written why already.
    pub(crate) fn write_unless_known(&self, layout: &Layout) -> Result<(), Error> {
        match Self::read(layout)? {
            Some(known) if known.is_of(self.pid, self.process_start) => Ok(()),
            _ => self.write(layout),
        }
    }
}
