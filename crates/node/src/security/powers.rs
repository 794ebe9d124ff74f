//! What the agent may do to the processes that it starts.

use std::{fs, path::Path};

use super::capabilities::SET_CAPABILITIES;

/// What the agent may do to the processes that it starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Powers {
    /// The agent's user, group and supplementary groups.
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    /// Whether containers have namespaces of their own.
    pub(crate) namespaces: bool,
    /// Whether a user namespace with one user and one group is among them.
    pub(crate) user_namespace: bool,
    /// Whether a container's files can be made read-only as a whole.
    pub(crate) read_only_views: bool,
    /// Whether the machine has SELinux, whose labels nothing sets here.
    pub(crate) selinux: bool,
    /// The capabilities that its processes can have at most.
    pub(crate) capabilities: u64,
    /// The capabilities that the agent itself has.
    pub(crate) effective: u64,
}

impl Powers {
    /// This process's, but for what is known of namespaces.
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

    /// Whether containers can have any user of the machine, root among them.
    pub(crate) fn is_root(&self) -> bool {
        self.uid == 0 && !self.user_namespace
    }

    /// Whether it can take capabilities from what a process can ever have. In a
    /// user namespace of its own every process can.
    pub(crate) fn can_limit(&self) -> bool {
        self.user_namespace || self.effective & (1 << SET_CAPABILITIES) != 0
    }
}
