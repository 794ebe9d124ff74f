//! The programs of the tests' images.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use crate::run::Outcome;

/// The images' program, in a folder that every user can read (containers run as others, too),
/// and at the root of the machine while this exists.
pub(super) struct Images {
    folder: tempfile::TempDir,
    at_root: Vec<PathBuf>,
}

/// The image's files at its root that tests name. Servers of the tests send the last one;
/// its content does not matter.
const PROGRAMS: [&str; 2] = ["/agnhost", "/agnhost-2"];
const CERTIFICATE: &str = "/localhost.crt";

/// What images run: their name, the script's name here, and the script, which gets the
/// container's arguments. A container's own command takes its place.
#[rustfmt::skip]
const SCRIPTS: [(&str, &str, &str); 3] = [
    (
        "registry.k8s.io/e2e-test-images/agnhost", "agnhost",
        "[ $# -gt 0 ] || set -- pause\n[ -x /agnhost ] && exec /agnhost \"$@\"\n\
         exec \"${0%/*}/program\" \"$@\"\n",
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
            let at_root = add_to_root(&folder.path().join("program"));
            Ok(Self { folder, at_root })
        };
        make().map_err(|error| format!("cannot copy {}: {error}", agnhost.display()))
    }

    /// The options of `longshore up` that name the entrypoints.
    pub(super) fn options(&self) -> Vec<String> {
        SCRIPTS
            .iter()
            .flat_map(|(image, name, _)| {
                let script = self.folder.path().join(name);
                let entrypoint = format!("{image}={}", script.display());
                ["--image-entrypoint".to_owned(), entrypoint]
            })
            .collect()
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        for path in &self.at_root {
            let _ = fs::remove_file(path);
        }
    }
}

/// Adds the image's files to the root of the machine, where this is permitted; returns those
/// that were added.
fn add_to_root(program: &Path) -> Vec<PathBuf> {
    let mut added = Vec::new();
    for path in PROGRAMS {
        if symlink(program, path).is_ok() {
            added.push(PathBuf::from(path));
        }
    }
    if !Path::new(CERTIFICATE).exists() && fs::write(CERTIFICATE, "a file\n").is_ok() {
        added.push(PathBuf::from(CERTIFICATE));
    }
    added
}
