//! What is to be run in a container.

use std::{ffi::OsString, path::PathBuf};

use super::{privileges::Privileges, stream::Wiring, view::Operation};

/// A command to run in a container.
#[derive(Debug, Clone, Default)]
pub(crate) struct Command {
    /// Program and arguments; empty: wait for TERM.
    pub(crate) arguments: Vec<OsString>,
    /// The whole environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub(crate) working_folder: PathBuf,
    /// Its host name.
    pub(crate) hostname: String,
    /// How its view of the files is made; ignored without mount namespaces.
    pub(crate) operations: Vec<Operation>,
    /// Its user, and what it gives up.
    pub(crate) privileges: Privileges,
    /// Its streams.
    pub(crate) wiring: Wiring,
}
