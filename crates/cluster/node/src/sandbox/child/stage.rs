//! The stages of a start, to report the stage that failed.

/// The stage of a start that failed; sent through the error pipe as a number.
/// `init/main.rs` uses the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sandbox) enum Stage {
    Session = 1,
    Descriptors = 2,
    UserMap = 3,
    View = 4,
    Hostname = 5,
    Fork = 6,
    User = 7,
    WorkingFolder = 8,
    Execute = 9,
    Enter = 10,
    Terminal = 11,
    Capabilities = 12,
    Init = 13,
    Groups = 14,
    NoNewPrivileges = 15,
    SystemCalls = 16,
}

impl Stage {
    pub(in crate::sandbox) fn from_number(number: u32) -> Option<Self> {
        [
            Self::Session,
            Self::Descriptors,
            Self::UserMap,
            Self::View,
            Self::Hostname,
            Self::Fork,
            Self::User,
            Self::WorkingFolder,
            Self::Execute,
            Self::Enter,
            Self::Terminal,
            Self::Capabilities,
            Self::Init,
            Self::Groups,
            Self::NoNewPrivileges,
            Self::SystemCalls,
        ]
        .into_iter()
        .find(|stage| *stage as u32 == number)
    }
}
