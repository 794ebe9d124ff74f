//! What the child is to do, computed before it exists.

use std::{
    ffi::{CString, c_int},
    os::fd::RawFd,
};

use super::{step::Step, strings::Strings};

/// What the child gives up, for itself and all of its descendants, before it
/// executes the init.
#[derive(Default)]
pub(in crate::sandbox) struct Limits {
    /// The supplementary groups.
    pub(in crate::sandbox) groups: Option<Vec<u32>>,
    pub(in crate::sandbox) no_new_privileges: bool,
    /// A filter of system calls; empty for none.
    pub(in crate::sandbox) system_calls: Vec<libc::sock_filter>,
    /// The capabilities that are kept, in a user namespace: there the init has no
    /// more use of the others, and could not drop them later.
    pub(in crate::sandbox) capabilities: Option<u64>,
}

/// All that the child needs, made before it exists.
pub(in crate::sandbox) struct Program {
    /// `CLONE_NEW…` flags; 0 for none.
    pub(in crate::sandbox) namespaces: c_int,
    /// The container to run in, in place of one of its own: a descriptor of
    /// its init, and which of its namespaces to enter.
    pub(in crate::sandbox) enter: Option<(RawFd, c_int)>,
    /// Contents of `uid_map` and `gid_map`, in a new user namespace.
    pub(in crate::sandbox) user_map: Option<(CString, CString)>,
    pub(in crate::sandbox) steps: Vec<Step>,
    pub(in crate::sandbox) hostname: Option<CString>,
    pub(in crate::sandbox) limits: Limits,
    /// The init's file.
    pub(in crate::sandbox) init: RawFd,
    /// The init's arguments, see `init/arguments.rs`, and the command's environment.
    pub(in crate::sandbox) arguments: Strings,
    pub(in crate::sandbox) environment: Strings,
    /// Standard input, output, error.
    pub(in crate::sandbox) streams: [RawFd; 3],
    /// Where to say what failed; closed by success.
    pub(in crate::sandbox) errors: RawFd,
}

impl Program {
    /// Whether it makes a PID namespace.
    pub(in crate::sandbox) fn has_own_processes(&self) -> bool {
        self.namespaces & libc::CLONE_NEWPID != 0
    }

    /// Whether the init ends what the command leaves behind: there is no PID
    /// namespace to do it. In another container that is the container's.
    pub(in crate::sandbox) fn tidies(&self) -> bool {
        !self.has_own_processes() && self.enter.is_none_or(|(_, namespaces)| namespaces == 0)
    }

    /// Whether the command gets a session of its own. Without a PID namespace it
    /// gets a process group only, which the init kills.
    pub(in crate::sandbox) fn has_session(&self) -> bool {
        self.has_own_processes() || self.enter.is_some()
    }
}
