//! Detects once which namespaces the kernel allows this process.

use std::{ffi::CString, io, path::Path, sync::OnceLock};

use tokio::sync::oneshot;

use super::{
    child::{self, Limits, Program, Step, Strings, c_string},
    privileges::Privileges,
};

/// The features that the kernel allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Features {
    /// Flags for `clone`: mount, PID and UTS namespaces, and a user namespace if the others require
    /// it; 0 if no namespaces are allowed.
    pub(super) namespaces: libc::c_int,
    /// True if the root file system of a container can be made read-only.
    pub(crate) read_only_views: bool,
    /// The reason why namespaces are not available.
    pub(crate) refusal: Option<String>,
}

impl Features {
    /// Returns the features without namespaces, where containers only have process groups.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self {
            namespaces: 0,
            read_only_views: false,
            refusal: Some("switched off".to_owned()),
        }
    }

    /// Returns true if containers have their own mount namespace.
    pub(crate) fn has_mounts(&self) -> bool {
        self.namespaces != 0
    }

    /// Returns the features that the kernel allows this process. `scratch` is a directory to mount
    /// over.
    pub(super) async fn of_this_process(scratch: &Path) -> io::Result<Self> {
        /// Later agents of this process have the same features.
        static FOUND: OnceLock<Features> = OnceLock::new();
        if let Some(found) = FOUND.get() {
            return Ok(found.clone());
        }
        let (detected, features) = oneshot::channel();
        let scratch = scratch.to_owned();
        let thread = std::thread::Builder::new().name("longshore-features".to_owned());
        thread.spawn(move || {
            child::block_signals();
            let _ = detected.send(Self::detect(&scratch));
        })?;
        let features = features.await;
        let features = features.map_err(|_| io::Error::other("the detection ended"))?;
        if features.refusal.is_none() {
            let _ = FOUND.set(features.clone());
        }
        Ok(features)
    }

    /// Tries the namespaces in a child. `scratch` is a directory to mount over.
    fn detect(scratch: &Path) -> Self {
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

    /// Returns true if commands run in their own user namespace.
    pub(crate) fn has_user_namespace(&self) -> bool {
        self.namespaces & libc::CLONE_NEWUSER != 0
    }
}

/// Tries a mount in new namespaces, and optionally makes it read-only.
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
        mounts_of: None,
        cgroups: Vec::new(),
        user_map: user.then(|| Privileges::default().user_map()),
        steps,
        hostname: None,
        limits: Limits::default(),
        listen: None,
        init: 2,
        arguments: Strings::new(Vec::new()),
        environment: Strings::new(Vec::new()),
        streams: [0, 1, 2],
        errors: 2,
    };
    match child::try_steps(&program) {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
