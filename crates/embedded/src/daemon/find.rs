//! Finding the cluster of a folder.

use std::time::Instant;

use super::{POLL_INTERVAL, Record, TRANSITION_TIMEOUT};
use crate::{Error, layout::Layout, lock::Lock};

/// What a folder's cluster is doing.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// No process runs it.
    Stopped,
    /// It serves.
    Running(Record),
}

impl State {
    /// The record of a running cluster.
    #[must_use]
    pub fn running(self) -> Option<Record> {
        match self {
            Self::Running(record) => Some(record),
            Self::Stopped => None,
        }
    }
}

/// One look: `None` while the cluster is between states.
pub(crate) fn look(layout: &Layout) -> Result<Option<State>, Error> {
    if !Lock::is_held(&layout.lock())? {
        return Ok(Some(State::Stopped));
    }
    Ok(Record::read_living(layout)?.map(State::Running))
}

/// Finds the cluster of a folder. One that is just starting or stopping is
/// waited for.
///
/// # Errors
/// A file cannot be read, or the cluster stays between states.
pub async fn find(layout: &Layout) -> Result<State, Error> {
    layout.check()?;
    let begin = Instant::now();
    loop {
        if let Some(state) = look(layout)? {
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
