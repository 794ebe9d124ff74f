//! The errors that prevent the start of the agent.

use std::{io, path::PathBuf};

/// The reason why the agent cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The API rejected the node or cannot be reached.
    #[error("the node {name:?} could not be registered: {source}")]
    Register {
        /// The node's name.
        name: String,
        /// The client's error.
        source: longshore_client::Error,
    },
    /// The nodes of an earlier agent cannot be listed or deleted.
    #[error("nodes of an earlier start cannot be removed: {0}")]
    EarlierNodes(#[source] longshore_client::Error),
    /// The pods of the node cannot be watched.
    #[error("the pods of the node cannot be watched: {0}")]
    Watch(#[source] longshore_client::Error),
    /// The data folder cannot be used.
    #[error(
        "the node's data folder {path:?} cannot be used: {source}; choose a folder that this user may write to"
    )]
    DataFolder {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The thread that starts processes cannot be created.
    #[error("the node cannot start processes: {0}")]
    Spawner(#[source] io::Error),
}
