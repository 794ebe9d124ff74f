//! Debian's packages that a chore needs, and Go.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::{Outcome, finish, output};

/// Installs what is missing of these: a program (or an absolute path), and the package that
/// has it. Needs apt-get and root; otherwise the error names the packages.
pub(crate) fn install(needed: &[(&str, &str)]) -> Outcome {
    let missing: Vec<&str> = needed
        .iter()
        .filter(|(what, _)| !is_there(what))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    if find("apt-get").is_none() {
        return Err(format!(
            "these are missing, named by Debian's packages: {names}"
        ));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(format!(
            "some tools are missing; install them and try again:\n  \
             sudo apt-get install --no-install-recommends {names}"
        ));
    }
    println!("installing {names}");
    let apt = |words: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(words)
            .env("DEBIAN_FRONTEND", "noninteractive")
            // Services of the packages are not started.
            .env("RUNLEVEL", "1");
        finish(&mut apt)
    };
    let words = ["install", "--yes", "--no-install-recommends"];
    let words = [&words[..], &missing].concat();
    // A new machine has no list of packages, or an old one.
    apt(&words).or_else(|_| apt(&["update"]).and_then(|()| apt(&words)))
}

/// Fails when Go is missing. It is not installed: Debian's may be too old.
pub(crate) fn require_go() -> Outcome {
    output(Command::new("go").arg("version"))
        .map_err(|_| "go is missing, 1.26 or newer (Debian: golang-go)")?;
    Ok(())
}

/// Where a program is, by `PATH`.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

fn is_there(what: &str) -> bool {
    match what.starts_with('/') {
        true => Path::new(what).exists(),
        false => find(what).is_some(),
    }
}
