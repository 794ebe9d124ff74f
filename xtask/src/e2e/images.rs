//! The programs of the tests' images.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use crate::run::Outcome;

/// A folder with the images' program, that every user can read: containers run as others, too.
pub(super) struct Images(tempfile::TempDir);

/// What images run: their name, the script's name here, and the script, which gets the
/// container's arguments. A container's own command takes its place.
#[rustfmt::skip]
const SCRIPTS: [(&str, &str, &str); 3] = [
    (
        "registry.k8s.io/e2e-test-images/agnhost", "agnhost",
        "[ $# -gt 0 ] || set -- pause\nexec \"${0%/*}/program\" \"$@\"\n",
    ),
    // No entrypoint, and `sh` as the command.
    (
        "registry.k8s.io/e2e-test-images/busybox", "busybox",
        "[ $# -gt 0 ] || set -- sh\nexec \"$@\"\n",
    ),
    ("registry.k8s.io/pause", "pause", "exec \"${0%/*}/program\" pause\n"),
];

impl Images {
    pub(super) fn new(agnhost: &Path) -> Outcome<Self> {
        let make = || -> std::io::Result<Self> {
            let folder = tempfile::tempdir()?;
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
            fs::copy(agnhost, folder.path().join("program"))?;
            for (_, name, script) in SCRIPTS {
                let path = folder.path().join(name);
                fs::write(&path, format!("#!/bin/sh\n{script}"))?;
                fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
            }
            Ok(Self(folder))
        };
        make().map_err(|error| format!("cannot copy {}: {error}", agnhost.display()))
    }

    /// The options of `longshore up` that name the entrypoints.
    pub(super) fn options(&self) -> Vec<String> {
        SCRIPTS
            .iter()
            .flat_map(|(image, name, _)| {
                let script = self.0.path().join(name);
                let entrypoint = format!("{image}={}", script.display());
                ["--image-entrypoint".to_owned(), entrypoint]
            })
            .collect()
    }
}
