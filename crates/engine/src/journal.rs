//! What stands between the state machine and the disk: a batch of records goes
//! in whole or not at all.

use std::sync::Arc;

use bytes::Bytes;

/// One change of the stored objects.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// The kind's name in the store.
    pub(crate) kind: String,
    /// The object's key in its kind.
    pub(crate) key: Arc<str>,
    /// The object's bytes; `None` takes it away.
    pub(crate) value: Option<Bytes>,
}

/// Keeps batches of records.
pub(crate) trait Journal: Send {
    /// Makes the records durable, in order, with the revision they lead to.
    /// When it fails, none of them is kept.
    fn commit(&mut self, revision: u64, records: &[Record]) -> Result<(), String>;
}

/// Keeps nothing: the state in memory is all there is.
#[derive(Debug)]
pub(crate) struct NoJournal;

impl Journal for NoJournal {
    fn commit(&mut self, _revision: u64, _records: &[Record]) -> Result<(), String> {
        Ok(())
    }
}
