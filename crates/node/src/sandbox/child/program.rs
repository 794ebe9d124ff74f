//! What the child is to do, computed before it exists.

use std::{
    ffi::{CString, c_char, c_int},
    os::fd::RawFd,
    ptr,
};

use super::steps::Step;

/// Which part of the start failed; goes through the error pipe as a number.
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
        ]
        .into_iter()
        .find(|stage| *stage as u32 == number)
    }
}

/// A null-terminated array of C strings that owns them.
pub(in crate::sandbox) struct Strings {
    pub(super) pointers: Vec<*const c_char>,
    _owned: Vec<CString>,
}

// SAFETY: the pointers lead into `_owned`, which moves with them and is never
// changed; a CString's buffer does not move when the CString does.
unsafe impl Send for Strings {}

impl Strings {
    pub(in crate::sandbox) fn new(owned: Vec<CString>) -> Self {
        let mut pointers: Vec<_> = owned.iter().map(|text| text.as_ptr()).collect();
        pointers.push(ptr::null());
        Self {
            pointers,
            _owned: owned,
        }
    }
}

/// The user a command runs as.
#[derive(Debug, Clone, Default)]
pub(in crate::sandbox) struct User {
    pub(in crate::sandbox) uid: Option<u32>,
    pub(in crate::sandbox) gid: Option<u32>,
    pub(in crate::sandbox) groups: Vec<u32>,
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
    /// Files to try, in order; empty: wait for TERM and end with 0.
    pub(in crate::sandbox) candidates: Vec<CString>,
    pub(in crate::sandbox) arguments: Strings,
    pub(in crate::sandbox) environment: Strings,
    pub(in crate::sandbox) working_folder: CString,
    pub(in crate::sandbox) user: Option<User>,
    /// Standard input, output, error.
    pub(in crate::sandbox) streams: [RawFd; 3],
    /// Whether they are a terminal, to be the command's own.
    pub(in crate::sandbox) terminal: bool,
    /// Where to say what failed; closed by success.
    pub(in crate::sandbox) errors: RawFd,
}
