//! The command to run in a container.

use std::{ffi::OsString, path::PathBuf, sync::Arc};

use crate::cgroups::Group;

use super::{ports::PodPorts, privileges::Privileges, stream::Wiring, view::Operation};

/// The command to run in a container.
#[derive(Debug, Clone, Default)]
pub(crate) struct Command {
    /// The program and its arguments. If empty, the container only waits for TERM.
    pub(crate) arguments: Vec<OsString>,
    /// The complete environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The working directory.
    pub(crate) working_folder: PathBuf,
    /// True to create a missing working directory.
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
    /// The pod's ports. `None` for a command that uses the machine's ports.
    pub(crate) ports: Option<Arc<PodPorts>>,
    /// The cgroup of the command's processes. `None` keeps the agent's cgroup.
    pub(crate) cgroup: Option<Arc<Group>>,
}
