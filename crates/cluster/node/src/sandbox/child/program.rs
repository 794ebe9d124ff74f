//! The child's instructions, computed before it exists.

use std::{
    ffi::{CString, c_int},
    os::fd::{AsRawFd, OwnedFd, RawFd},
};

use super::{step::Step, strings::Strings};

/// The privileges that the child gives up, for itself and all its descendants, before it executes
/// the init.
#[derive(Default)]
pub(in crate::sandbox) struct Limits {
    /// The supplementary groups.
    pub(in crate::sandbox) groups: Option<Vec<u32>>,
    pub(in crate::sandbox) no_new_privileges: bool,
    /// The system call filter; empty for none.
    pub(in crate::sandbox) system_calls: Vec<libc::sock_filter>,
    /// The capabilities to keep in a user namespace. The init does not need the
    /// others there, and could not drop them later.
    pub(in crate::sandbox) capabilities: Option<u64>,
}

/// The connection over which the child asks the agent about system calls.
pub(in crate::sandbox) struct Listener {
    /// The socket over which the listener is sent.
    pub(in crate::sandbox) socket: RawFd,
    /// The filter that selects the calls.
    pub(in crate::sandbox) filter: Vec<libc::sock_filter>,
}

/// Everything the child needs, allocated before it exists.
pub(in crate::sandbox) struct Program {
    /// `CLONE_NEW…` flags; 0 for none.
    pub(in crate::sandbox) namespaces: c_int,
    /// The existing container to run in: a descriptor of its init, and the flags of the namespaces
    /// to enter.
    pub(in crate::sandbox) enter: Option<(RawFd, c_int)>,
    /// A descriptor of the process whose mounts the new mount namespace starts with, instead of the
    /// agent's.
    pub(in crate::sandbox) mounts_of: Option<RawFd>,
    /// Files through which the init joins cgroups; at most `MAX_CGROUPS`.
    pub(in crate::sandbox) cgroups: Vec<RawFd>,
    /// Contents of `uid_map` and `gid_map` in a new user namespace.
    pub(in crate::sandbox) user_map: Option<(CString, CString)>,
    pub(in crate::sandbox) steps: Vec<Step>,
    pub(in crate::sandbox) hostname: Option<CString>,
    pub(in crate::sandbox) limits: Limits,
    /// The listener for the pod's ports.
    pub(in crate::sandbox) listen: Option<Listener>,
    /// The init's executable.
    pub(in crate::sandbox) init: RawFd,
    /// The init's arguments (see `init/arguments.rs`) and the command's
    /// environment.
    pub(in crate::sandbox) arguments: Strings,
    pub(in crate::sandbox) environment: Strings,
    /// Standard input, output and error.
    pub(in crate::sandbox) streams: [RawFd; 3],
    /// The pipe that reports a failure; success closes it.
    pub(in crate::sandbox) errors: RawFd,
}

impl Program {
    /// Returns the program that runs the init in the agent's own namespaces, with these arguments
    /// and descriptors.
    pub(in crate::sandbox) fn of_init(
        init: RawFd,
        arguments: Vec<CString>,
        streams: [RawFd; 3],
        cgroups: &[OwnedFd],
    ) -> Self {
        let [_, _, errors] = streams;
        Self {
            namespaces: 0,
            enter: None,
            mounts_of: None,
            cgroups: cgroups.iter().map(AsRawFd::as_raw_fd).collect(),
            user_map: None,
            steps: Vec::new(),
            hostname: None,
            limits: Limits::default(),
            listen: None,
            init,
            arguments: Strings::new(arguments),
            environment: Strings::new(Vec::new()),
            streams,
            errors,
        }
    }

    /// Returns true if the child creates a PID namespace.
    pub(in crate::sandbox) fn has_own_processes(&self) -> bool {
        self.namespaces & libc::CLONE_NEWPID != 0
    }

    /// Returns true if the init kills the processes that the command leaves behind, because no PID
    /// namespace does so. In an existing container, its own init does so.
    pub(in crate::sandbox) fn kills_leftovers(&self) -> bool {
        !self.has_own_processes() && self.enter.is_none_or(|(_, namespaces)| namespaces == 0)
    }

    /// Returns true if the command gets its own session. Without a PID namespace, it only gets a
    /// process group, which the init kills.
    pub(in crate::sandbox) fn has_session(&self) -> bool {
        self.has_own_processes() || self.enter.is_some()
    }
}
