//! What a command's processes may be and do.

use std::ffi::CString;

/// The user of a command, and what it gives up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Privileges {
    /// The user and the group; in a user namespace those that the agent's own
    /// are seen as.
    pub(crate) user: Option<u32>,
    pub(crate) group: Option<u32>,
    /// The supplementary groups; `None`: the agent's.
    pub(crate) groups: Option<Vec<u32>>,
    /// Whether no program that it executes can give it more.
    pub(crate) no_new_privileges: bool,
    /// The capabilities, by their numbers' bits, that its processes can have at
    /// most; `None`: the agent's.
    pub(crate) capabilities: Option<u64>,
    /// Whether system calls are refused that no ordinary program needs.
    pub(crate) filters_system_calls: bool,
}

impl Privileges {
    /// The contents of `uid_map` and `gid_map` that show this process's user and
    /// group in a new user namespace as these, or as themselves.
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
