//! `cargo xtask test --frameworks`: installs the frameworks that read what we
//! write, pinned, and runs the tests in which they judge. Several gigabytes and
//! some minutes, the first time.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::{Outcome, finish, root, target};

/// Tells the tests where they are.
pub(crate) const FOLDER: &str = "LONGSHORE_TEST_FRAMEWORKS";
/// Sources that are unpacked, not installed.
const LAUNCHERS: &str = "launchers";
/// The Python that unpacks them.
const SOURCES: &str = "sources";

/// Where they are, or will be.
pub(crate) fn folder() -> PathBuf {
    target().join("tools/frameworks")
}

/// Installs what is missing, and tells where it is.
pub(crate) fn install() -> Outcome<PathBuf> {
    install_some(|_| true)
}

/// Installs what is missing of the chosen ones, and tells where it is.
pub(crate) fn install_some(is_wanted: impl Fn(&str) -> bool) -> Outcome<PathBuf> {
    let folder = folder();
    let pins = root().join("xtask/tools/frameworks.txt");
    let text = read(&pins)?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.filter_map(|line| line.split_once(": "));
    for (name, wanted) in lines.filter(|(name, _)| is_wanted(name)) {
        let words: Vec<&str> = wanted.split_whitespace().collect();
        let place = folder.join(name);
        let done = place.join("installed");
        let stamp = stamp(&words)?;
        if fs::read_to_string(&done).ok().as_ref() == Some(&stamp) {
            continue;
        }
        println!("installing {name}: {wanted}");
        if place.exists() {
            fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        }
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        if name == LAUNCHERS {
            unpack(&folder.join(SOURCES), &place, &words)?;
        } else {
            environment(&place, &words)?;
        }
        fs::write(&done, stamp).map_err(|error| format!("{}: {error}", done.display()))?;
    }
    Ok(folder)
}

fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The words, and what the files among them say.
fn stamp(words: &[&str]) -> Outcome<String> {
    let mut stamp = words.join(" ");
    for file in words.iter().filter(|word| word.ends_with(".txt")) {
        stamp += &read(&root().join(file))?;
    }
    Ok(stamp)
}

fn pip(environment: &Path) -> Command {
    let mut command = Command::new(environment.join("bin/python3"));
    command
        .args(["-m", "pip", "--disable-pip-version-check", "--quiet"])
        .current_dir(root());
    command
}

fn environment(place: &Path, words: &[&str]) -> Outcome {
    finish(Command::new("python3").args(["-m", "venv"]).arg(place))?;
    finish(pip(place).arg("install").args(words))
}

/// Downloads sources and unpacks them, each below its package's name.
fn unpack(python: &Path, place: &Path, words: &[&str]) -> Outcome {
    fs::create_dir_all(place).map_err(|error| format!("{}: {error}", place.display()))?;
    let download = [
        "download",
        "--no-deps",
        "--no-build-isolation",
        "--no-binary",
        ":all:",
    ];
    finish(
        pip(python)
            .args(download)
            .arg("--dest")
            .arg(place)
            .args(words),
    )?;
    for word in words {
        let (name, version) = word.split_once("==").ok_or("a pin has no version")?;
        let archive = place.join(format!("{name}-{version}.tar.gz"));
        let inside = format!("{name}-{version}/{name}");
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--gzip", "--strip-components=1", "--file"]);
        finish(tar.arg(&archive).arg("--directory").arg(place).arg(inside))?;
    }
    Ok(())
}
