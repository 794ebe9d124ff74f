//! The identity and privileges of a command's processes.

use std::ffi::CString;

/// The user of a command and the limits of its privileges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Privileges {
    /// The user and the group; in a user namespace, the ids that the agent's
    /// own ids are mapped to.
    pub(crate) user: Option<u32>,
    pub(crate) group: Option<u32>,
    /// The supplementary groups; `None` keeps the agent's.
    pub(crate) groups: Option<Vec<u32>>,
    /// True if executing a program cannot grant further privileges.
    pub(crate) no_new_privileges: bool,
    /// The maximum capabilities of the processes as bits; `None` keeps the
    /// agent's.
    pub(crate) capabilities: Option<u64>,
    /// True to deny system calls that ordinary programs do not need.
    pub(crate) filters_system_calls: bool,
}

impl Privileges {
    /// Returns the contents of `uid_map` and `gid_map` that map this process's user and group to
    /// these ids in a new user namespace, or to themselves.
    pub(super) fn user_map(&self) -> (CString, CString) {
        let (user, group) = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        let line = |seen: Option<u32>, id: u32| {
            let seen = seen.unwrap_or(id);
            CString::new(format!("{seen} {id} 1")).unwrap_or_default()
        };
        (line(self.user, user), line(self.group, group))
    }
}
