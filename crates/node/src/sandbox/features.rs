//! Finds out, once, which namespaces the kernel allows this process.

use std::{ffi::CString, io, path::Path};

use super::{
    child::{self, Program, Step, Strings},
    spawner::{c_string, identity_map},
};

/// What the kernel allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Features {
    /// Flags for `clone`: mount, PID and UTS namespaces, with a user namespace
    /// if only that makes them possible; 0 if none are allowed.
    pub(super) namespaces: libc::c_int,
    /// Why there are none.
    pub(crate) refusal: Option<String>,
}

impl Features {
    /// Process groups only.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self {
            namespaces: 0,
            refusal: Some("switched off".to_owned()),
        }
    }

    /// Whether containers have a mount namespace of their own.
    pub(crate) fn has_mounts(&self) -> bool {
        self.namespaces != 0
    }

    /// Tries the namespaces out in a child, `scratch` being a folder to mount over.
    pub(super) fn detect(scratch: &Path) -> Self {
        let plain = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWUTS;
        let mut refusal = None;
        for namespaces in [plain, plain | libc::CLONE_NEWUSER] {
            match try_namespaces(namespaces, scratch) {
                Ok(()) => {
                    return Self {
                        namespaces,
                        refusal: None,
                    };
                }
                Err(error) => refusal = Some(error.to_string()),
            }
        }
        Self {
            namespaces: 0,
            refusal,
        }
    }

    /// Whether commands run in a user namespace of their own.
    pub(super) fn has_user_namespace(&self) -> bool {
        self.namespaces & libc::CLONE_NEWUSER != 0
    }
}

fn try_namespaces(namespaces: libc::c_int, scratch: &Path) -> io::Result<()> {
    let at = c_string(scratch.as_os_str())?;
    let options = CString::new("mode=0755")?;
    let user = namespaces & libc::CLONE_NEWUSER != 0;
    let program = Program {
        namespaces,
        enter: None,
        user_map: user.then(identity_map),
        steps: vec![Step::Private, Step::Tmpfs { at, options }],
        hostname: None,
        candidates: Vec::new(),
        arguments: Strings::new(Vec::new()),
        environment: Strings::new(Vec::new()),
        working_folder: CString::default(),
        user: None,
        streams: [0, 1, 2],
        terminal: false,
        errors: 2,
    };
    match child::try_out(&program) {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
