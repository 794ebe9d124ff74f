//! The privileges of the agent over the processes that it starts.

use std::{fs, path::Path};

use super::capabilities::SET_CAPABILITIES;

/// The privileges of the agent over the processes that it starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentPrivileges {
    /// The agent's user, group and supplementary groups.
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    /// True if containers have their own namespaces.
    pub(crate) namespaces: bool,
    /// True if these include a user namespace with one user and one group.
    pub(crate) user_namespace: bool,
    /// True if the root file system of a container can be made read-only.
    pub(crate) read_only_views: bool,
    /// True if the machine has SELinux, whose labels the agent does not set.
    pub(crate) selinux: bool,
    /// The maximum capabilities of the agent's processes.
    pub(crate) capabilities: u64,
    /// The capabilities of the agent itself.
    pub(crate) effective: u64,
}

impl AgentPrivileges {
    /// Reads this process's privileges, except for those about namespaces.
    pub(crate) fn of_this_process() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            u64::from_str_radix(line.trim(), 16).ok()
        };
        let groups = rustix::process::getgroups().unwrap_or_default();
        Self {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            groups: groups.into_iter().map(|group| group.as_raw()).collect(),
            selinux: Path::new("/sys/fs/selinux/enforce").exists(),
            capabilities: mask("CapBnd:").unwrap_or(0),
            effective: mask("CapEff:").unwrap_or(0),
            ..Self::default()
        }
    }

    /// Returns true if containers can run as any user of the machine, including root.
    pub(crate) fn is_root(&self) -> bool {
        self.uid == 0 && !self.user_namespace
    }

    /// Returns true if containers can run as a user that they or their images choose.
    pub(crate) fn may_choose_user(&self) -> bool {
        self.is_root() || self.user_namespace
    }

    /// Returns true if the agent can limit the capabilities of processes. Every process can do so
    /// in its own user namespace.
    pub(crate) fn can_limit(&self) -> bool {
        self.user_namespace || self.effective & (1 << SET_CAPABILITIES) != 0
    }
}
