//! Builds an image with Python and a shell from Debian packages.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{Image, PYTHON, PYTHON_FILE, create_empty_folder, create_folder, save};
use crate::run::{Outcome, run_command};

/// The packages in the image, in addition to their dependencies.
const PACKAGES: &[&str] = &[
    "python3",
    "base-files",
    "bash",
    "coreutils",
    "libc-bin",
    "sed",
    "grep",
    "gawk",
    "findutils",
    "hostname",
    "procps",
    "ca-certificates",
    // The wheels of some frameworks depend on it.
    "libstdc++6",
];

/// Links that the maintainer scripts of the packages would create; these scripts do not run.
const LINKS: &[(&str, &str)] = &[
    ("usr/bin/sh", "bash"),
    ("usr/bin/awk", "gawk"),
    ("usr/local/bin/python3", "/usr/bin/python3"),
    ("usr/local/bin/python", "/usr/bin/python3"),
];

const USERS: &str =
    "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n";
const GROUPS: &str = "root:x:0:\nnogroup:x:65534:\n";

/// Builds [`PYTHON`].
pub(super) fn build(folder: &Path) -> Outcome<PathBuf> {
    let (root, packages) = (folder.join("python"), folder.join("packages"));
    download(&packages)?;
    unpack(&packages, &root)?;
    complete(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    let path = folder.join(PYTHON_FILE);
    let image = Image {
        name: PYTHON,
        entrypoint: &[],
        command: &["python3"],
        keeps_owners: true,
    };
    save(&path, &image, &root)?;
    Ok(path)
}

/// Downloads the packages and all of their dependencies, also those that this machine has.
fn download(folder: &Path) -> Outcome {
    create_folder(&folder.join("partial"))?;
    let folder = folder
        .canonicalize()
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut apt = Command::new("apt-get");
    apt.args([
        "-o",
        "Dir::State::status=/dev/null",
        "-o",
        "Debug::NoLocking=1",
    ])
    .args(["-o", "APT::Sandbox::User=root", "-o"])
    .arg(format!("Dir::Cache::archives={}", folder.display()))
    .args([
        "--no-install-recommends",
        "--yes",
        "--quiet",
        "--download-only",
        "install",
    ])
    .args(PACKAGES)
    .stdout(Stdio::null());
    run_command(&mut apt).map_err(|problem| {
        format!("{problem}; the image requires Debian packages: try `apt-get update` first")
    })
}

fn unpack(packages: &Path, root: &Path) -> Outcome {
    create_empty_folder(root)?;
    let found =
        fs::read_dir(packages).map_err(|error| format!("{}: {error}", packages.display()))?;
    let mut found: Vec<PathBuf> = found.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "deb"));
    found.sort();
    // Some packages of this release still contain files in `/bin` and `/lib`, which are links
    // to the folders in `/usr`.
    for name in ["bin", "lib", "lib64", "sbin"] {
        create_folder(&root.join("usr").join(name))?;
        symlink(Path::new("usr").join(name), root.join(name))
            .map_err(|error| format!("{}: {error}", root.join(name).display()))?;
    }
    for package in found {
        let mut contents = Command::new("dpkg-deb");
        contents
            .arg("--fsys-tarfile")
            .arg(&package)
            .stdout(Stdio::piped());
        let mut contents = contents
            .spawn()
            .map_err(|error| format!("cannot start `dpkg-deb`: {error}"))?;
        let mut tar = Command::new("tar");
        tar.args([
            "--extract",
            "--keep-directory-symlink",
            "--preserve-permissions",
        ])
        .args(["--exclude=./usr/share/doc/*", "--exclude=./usr/share/man/*"])
        .arg("--exclude=./usr/share/locale/*")
        .arg("--directory")
        .arg(root);
        if let Some(from) = contents.stdout.take() {
            tar.stdin(from);
        }
        run_command(&mut tar)?;
        let status = contents.wait();
        if !status.is_ok_and(|status| status.success()) {
            return Err(format!("cannot unpack {}", package.display()));
        }
    }
    Ok(())
}

fn complete(root: &Path) -> std::io::Result<()> {
    fs::create_dir_all(root.join("usr/local/bin"))?;
    for (link, to) in LINKS {
        let link = root.join(link);
        if link.symlink_metadata().is_err() {
            symlink(to, link)?;
        }
    }
    fs::write(root.join("etc/passwd"), USERS)?;
    fs::write(root.join("etc/group"), GROUPS)?;
    fs::create_dir_all(root.join("tmp"))?;
    fs::set_permissions(root.join("tmp"), Permissions::from_mode(0o1777))?;
    certificates(root)
}

/// Writes all of Mozilla's certificates into one file, as `update-ca-certificates` does.
fn certificates(root: &Path) -> std::io::Result<()> {
    let mut all = String::new();
    let source = root.join("usr/share/ca-certificates/mozilla");
    let mut paths: Vec<PathBuf> = fs::read_dir(source)?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    for path in paths {
        all += &fs::read_to_string(path)?;
    }
    fs::create_dir_all(root.join("etc/ssl/certs"))?;
    fs::write(root.join("etc/ssl/certs/ca-certificates.crt"), all)
}
