//! The programs of the tests' images.

use std::{
    env,
    ffi::OsString,
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    packages,
    run::{Outcome, output},
};

/// The images' program, in a folder that every user can read because containers run as other users,
/// too. It is also at the root of the machine while this value exists.
pub(super) struct Images {
    folder: tempfile::TempDir,
    at_root: Vec<PathBuf>,
}

/// Most images have the commands of busybox, and its shell.
const BUSYBOX: (&str, &str) = ("/bin/busybox", "busybox-static");

const SHELL: &str = "/bin/bash";

/// Commands that agnhost's image has from other packages than busybox.
const OF_AGNHOST: [&str; 4] = ["ip", "nc", "nslookup", "wget"];

/// The folder with the commands of busybox.
const APPLETS: &str = "applets";

/// The files of agnhost's image for its servers.
const PORTER_FILES: [&str; 2] = ["localhost.crt", "localhost.key"];

/// The image's files at its root that tests name. Servers of the tests send the last one;
/// its content does not matter.
const PROGRAMS: [&str; 2] = ["/agnhost", "/agnhost-2"];
const CERTIFICATE: &str = "/localhost.crt";

/// The images' names, the scripts' names here, and the scripts that the images run. A script gets
/// the container's arguments. A container's own command replaces it.
#[rustfmt::skip]
const SCRIPTS: [(&str, &str, &str); 3] = [
    (
        "registry.k8s.io/e2e-test-images/agnhost", "agnhost",
        "[ $# -gt 0 ] || set -- pause\n\
         [ -x /agnhost ] && exec /agnhost \"$@\"\nexec \"${0%/*}/program\" \"$@\"\n",
    ),
    // No entrypoint, and `sh` as the command.
    (
        "registry.k8s.io/e2e-test-images/busybox", "busybox",
        "[ $# -gt 0 ] || set -- sh\nexec \"$@\"\n",
    ),
    ("registry.k8s.io/pause", "pause", "exec \"${0%/*}/program\" pause\n"),
];

impl Images {
    /// `sources` is the folder of agnhost's source code.
    pub(super) fn new(agnhost: &Path, sources: &Path) -> Outcome<Self> {
        packages::install(&[BUSYBOX])?;
        let applets = output(Command::new(BUSYBOX.0).arg("--list"))?;
        let make = || -> std::io::Result<Self> {
            let folder = tempfile::tempdir()?;
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
            fs::copy(agnhost, folder.path().join("program"))?;
            for (_, name, script) in SCRIPTS {
                let path = folder.path().join(name);
                fs::write(&path, format!("#!/bin/sh\n{script}"))?;
                fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
            }
            for name in PORTER_FILES {
                let path = folder.path().join(name);
                fs::copy(sources.join("porter").join(name), &path)?;
                fs::set_permissions(path, fs::Permissions::from_mode(0o644))?;
            }
            let applet_folder = folder.path().join(APPLETS);
            fs::create_dir(&applet_folder)?;
            let applets = applets.split_whitespace();
            for applet in applets.filter(|applet| !OF_AGNHOST.contains(applet)) {
                // The shell of the images passes all variables on to commands, even if their names
                // are not valid in a shell; the shell of the package does not.
                let program = if applet == "sh" { SHELL } else { BUSYBOX.0 };
                symlink(program, applet_folder.join(applet))?;
            }
            // The servers of agnhost read the files of the image from their working folder, or from
            // the paths in these variables.
            let [certificate, key] = PORTER_FILES.map(|name| folder.path().join(name));
            let at_root = folder.path().join("agnhost-with-files");
            let script = format!(
                "#!/bin/bash\nexport CERT_FILE=\"${{CERT_FILE:-{}}}\" KEY_FILE=\"${{KEY_FILE:-{}}}\"\nexec -a \"$0\" {} \"$@\"\n",
                certificate.display(),
                key.display(),
                folder.path().join("program").display(),
            );
            fs::write(&at_root, script)?;
            fs::set_permissions(&at_root, fs::Permissions::from_mode(0o755))?;
            let at_root = add_to_root(&at_root);
            Ok(Self { folder, at_root })
        };
        make().map_err(|error| format!("cannot copy {}: {error}", agnhost.display()))
    }

    /// The `PATH` of the cluster, and of its containers: the commands of busybox are first.
    pub(super) fn path(&self) -> OsString {
        let own = env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.folder.path().join(APPLETS));
        let path = env::join_paths(folders.chain(env::split_paths(&own)));
        path.unwrap_or(own)
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

impl Images {
    /// Writes the certificate at the root of the machine again, if a test has moved it.
    pub(super) fn renew_files(&self) {
        if self
            .at_root
            .iter()
            .any(|path| path == Path::new(CERTIFICATE))
        {
            let _ = write_certificate();
        }
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        for path in &self.at_root {
            let _ = fs::remove_file(path);
        }
    }
}

/// Writes the certificate, unless the machine has a file of this name.
fn write_certificate() -> std::io::Result<()> {
    fs::File::create_new(CERTIFICATE)?.write_all(b"a file\n")
}

/// Adds the image's files to the root of the machine, where this is permitted. Returns the added
/// files.
fn add_to_root(program: &Path) -> Vec<PathBuf> {
    let mut added = Vec::new();
    for path in PROGRAMS {
        if symlink(program, path).is_ok() {
            added.push(PathBuf::from(path));
        }
    }
    if write_certificate().is_ok() {
        added.push(PathBuf::from(CERTIFICATE));
    }
    added
}
