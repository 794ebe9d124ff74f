//! Debian packages that a task needs, and Go.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::{Outcome, output, run_command};

/// Installs missing programs or files. Each entry is a program (or an absolute path) and its
/// package. Requires apt-get and root; otherwise the error names the packages.
pub(crate) fn install(required: &[(&str, &str)]) -> Outcome {
    let missing: Vec<&str> = required
        .iter()
        .filter(|(what, _)| !is_installed(what))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    if find("apt-get").is_none() {
        return Err(format!(
            "required programs are missing; their Debian packages: {names}"
        ));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(format!(
            "required programs are missing; install them and try again:\n  \
             sudo apt-get install --no-install-recommends {names}"
        ));
    }
    println!("installing {names}");
    let apt = |args: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(args)
            .env("DEBIAN_FRONTEND", "noninteractive")
            // Prevents the packages from starting their services.
            .env("RUNLEVEL", "1");
        run_command(&mut apt)
    };
    let args = ["install", "--yes", "--no-install-recommends"];
    let args = [&args[..], &missing].concat();
    // The package lists may be missing or out of date.
    apt(&args).or_else(|_| apt(&["update"]).and_then(|()| apt(&args)))
}

/// Fails if Go is missing. It is not installed here: Debian's version may be too old.
pub(crate) fn require_go() -> Outcome {
    output(Command::new("go").arg("version"))
        .map_err(|_| "go is missing: install version 1.26 or newer (Debian: golang-go)")?;
    Ok(())
}

/// Finds a program in the `PATH`.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

fn is_installed(what: &str) -> bool {
    match what.starts_with('/') {
        true => Path::new(what).exists(),
        false => find(what).is_some(),
    }
}
