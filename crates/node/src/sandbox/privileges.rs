//! What a command's processes may be and do.

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
