//! Finds the cluster of a folder.

use std::time::Instant;

use super::{POLL_INTERVAL, Record, TRANSITION_TIMEOUT};
use crate::{Error, layout::Layout, lock::Lock};

/// The state of a folder's cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// No process runs the cluster.
    Stopped,
    /// The cluster is ready.
    Running(Record),
}

impl State {
    /// Returns the record if the cluster is running.
    #[must_use]
    pub fn running(self) -> Option<Record> {
        match self {
            Self::Running(record) => Some(record),
            Self::Stopped => None,
        }
    }
}

/// Reads the current state; `None` while the cluster is starting or stopping.
pub(crate) fn try_find(layout: &Layout) -> Result<Option<State>, Error> {
    if !Lock::is_held(&layout.lock())? {
        return Ok(Some(State::Stopped));
    }
    Ok(Record::read_alive(layout)?.map(State::Running))
}

/// Finds the cluster of a folder. Waits while the cluster is starting or stopping.
///
/// # Errors
/// A file cannot be read, or the cluster does not finish starting or stopping in
/// time.
pub async fn find(layout: &Layout) -> Result<State, Error> {
    layout.check()?;
    let begin = Instant::now();
    loop {
        if let Some(state) = try_find(layout)? {
            return Ok(state);
        }
        if begin.elapsed() > TRANSITION_TIMEOUT {
            return Err(Error::Stuck {
                what: "get ready",
                dir: layout.dir().to_owned(),
                seconds: TRANSITION_TIMEOUT.as_secs(),
            });
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
