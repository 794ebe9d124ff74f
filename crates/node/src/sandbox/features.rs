//! Finds out, once, which namespaces the kernel allows this process.

use std::{ffi::CString, io, path::Path};

use super::{
    child::{self, Limits, Program, Step, Strings, c_string},
    privileges::Privileges,
};

/// What the kernel allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Features {
    /// Flags for `clone`: mount, PID and UTS namespaces, with a user namespace
    /// if only that makes them possible; 0 if none are allowed.
    pub(super) namespaces: libc::c_int,
    /// Whether a container's files can be made read-only as a whole.
    pub(crate) read_only_views: bool,
    /// Why there are no namespaces.
    pub(crate) refusal: Option<String>,
}

impl Features {
    /// Process groups only.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self {
            namespaces: 0,
            read_only_views: false,
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
            match try_namespaces(namespaces, scratch, false) {
                Ok(()) => {
                    return Self {
                        namespaces,
                        read_only_views: try_namespaces(namespaces, scratch, true).is_ok(),
                        refusal: None,
                    };
                }
                Err(error) => refusal = Some(error.to_string()),
            }
        }
        Self {
            namespaces: 0,
            read_only_views: false,
            refusal,
        }
    }

    /// Whether commands run in a user namespace of their own.
    pub(crate) fn has_user_namespace(&self) -> bool {
        self.namespaces & libc::CLONE_NEWUSER != 0
    }
}

/// Tries a mount in new namespaces, and whether it can be made read-only.
fn try_namespaces(namespaces: libc::c_int, scratch: &Path, read_only: bool) -> io::Result<()> {
    let at = c_string(scratch.as_os_str())?;
    let options = CString::new("mode=0755")?;
    let mut steps = vec![
        Step::Private,
        Step::Tmpfs {
            at: at.clone(),
            options,
        },
    ];
    if read_only {
        steps.push(Step::ReadOnlyTree { at });
    }
    let user = namespaces & libc::CLONE_NEWUSER != 0;
    let program = Program {
        namespaces,
        enter: None,
        user_map: user.then(|| Privileges::default().user_map()),
        steps,
        hostname: None,
        limits: Limits::default(),
        init: 2,
        arguments: Strings::new(Vec::new()),
        environment: Strings::new(Vec::new()),
        streams: [0, 1, 2],
        errors: 2,
    };
    match child::try_out(&program) {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
