//! The interface between the state machine and the disk. A batch of records is
//! committed atomically.

use std::sync::Arc;

use bytes::Bytes;

use crate::Error;

/// A change of a stored object.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// The kind's name in the store.
    pub(crate) kind: String,
    /// The object's key within its kind.
    pub(crate) key: Arc<str>,
    /// The object's bytes; `None` deletes it.
    pub(crate) value: Option<Bytes>,
    /// The object's bytes before the change; `None` if it did not exist.
    pub(crate) before: Option<Bytes>,
}

/// Stores batches of records.
pub(crate) trait Journal: Send {
    /// Makes the records durable in order, together with the revision they lead to, or leaves this
    /// to the first commit after [`Journal::sync_commits`]. On failure, no record is stored. Logs
    /// failures.
    fn commit(&mut self, revision: u64, records: &[Record]) -> Result<(), CommitError>;

    /// Ends the time in which commits are not durable when they return
    /// ([`Options::defer_sync`](crate::Options::defer_sync)). The next commit makes all earlier
    /// ones durable.
    fn sync_commits(&mut self) {}
}

/// The reason why a batch was not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub(crate) struct CommitError {
    pub(crate) problem: String,
    /// True if no space is left: a full disk, a quota, or a limit on the size of files.
    pub(crate) is_full: bool,
}

impl CommitError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            is_full: false,
        }
    }
}

impl From<CommitError> for Error {
    fn from(CommitError { problem, is_full }: CommitError) -> Self {
        if is_full {
            return Self::StorageFull(format!(
                "the cluster cannot store changes, this request changed nothing: {problem}: free space on the disk of the data folder, then repeat the request"
            ));
        }
        Self::Storage(format!(
            "the write could not be stored, nothing of it was kept: {problem}: check the disk of the data folder"
        ))
    }
}

/// A journal that stores no records: the state exists only in memory.
#[derive(Debug)]
pub(crate) struct NoJournal;

impl Journal for NoJournal {
    fn commit(&mut self, _revision: u64, _records: &[Record]) -> Result<(), CommitError> {
        Ok(())
    }
}
