//! The command to run in a container.

use std::{ffi::OsString, path::PathBuf, sync::Arc};

use crate::cgroups::Group;

use super::{ports::PodPorts, privileges::Privileges, stream::Wiring, view::Operation};

/// The command to run in a container.
#[derive(Debug, Clone, Default)]
pub(crate) struct Command {
    /// Program and arguments; if empty, wait for TERM.
    pub(crate) arguments: Vec<OsString>,
    /// The complete environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The working directory.
    pub(crate) working_folder: PathBuf,
    /// Whether to make the working directory if it is missing.
    pub(crate) makes_working_folder: bool,
    /// The host name.
    pub(crate) hostname: String,
    /// The operations that set up the file system view; ignored without mount
    /// namespaces.
    pub(crate) operations: Vec<Operation>,
    /// The user and the limits of its privileges.
    pub(crate) privileges: Privileges,
    /// The standard streams.
    pub(crate) wiring: Wiring,
    /// The pod's ports; `None` for a command that uses the machine's.
    pub(crate) ports: Option<Arc<PodPorts>>,
    /// The cgroup that its processes are in; `None` for that of the agent.
    pub(crate) cgroup: Option<Arc<Group>>,
}
