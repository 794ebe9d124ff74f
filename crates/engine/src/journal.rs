//! The interface between the state machine and the disk. A batch of records is
//! committed atomically.

use std::sync::Arc;

use bytes::Bytes;

/// One change of the stored objects.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// The kind's name in the store.
    pub(crate) kind: String,
    /// The object's key within its kind.
    pub(crate) key: Arc<str>,
    /// The object's bytes; `None` deletes it.
    pub(crate) value: Option<Bytes>,
}

/// Stores batches of records.
pub(crate) trait Journal: Send {
    /// Makes the records durable in order, together with the revision they lead
    /// to. On failure, none of them is stored.
    fn commit(&mut self, revision: u64, records: &[Record]) -> Result<(), String>;
}

/// Stores nothing: the state exists only in memory.
#[derive(Debug)]
pub(crate) struct NoJournal;

impl Journal for NoJournal {
    fn commit(&mut self, _revision: u64, _records: &[Record]) -> Result<(), String> {
        Ok(())
    }
}
