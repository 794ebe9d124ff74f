//! `cargo xtask test --frameworks`: installs pinned frameworks, which read the configuration
//! that Longshore writes for them. The first installation takes minutes and several gigabytes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::{Outcome, root, run_command, target};

/// The variable with the folder of the frameworks, for the tests.
pub(crate) const FOLDER_ENV: &str = "LONGSHORE_TEST_FRAMEWORKS";
/// The launchers, whose sources are unpacked and not installed.
const LAUNCHERS: &str = "launchers";
/// The virtual environment whose pip downloads these sources.
const SOURCES: &str = "sources";

/// The folder of the frameworks.
pub(crate) fn folder() -> PathBuf {
    target().join("tools/frameworks")
}

/// Installs the missing frameworks and returns their folder.
pub(crate) fn install() -> Outcome<PathBuf> {
    install_some(|_| true)
}

/// Installs the missing ones of the chosen frameworks and returns their folder.
pub(crate) fn install_some(is_wanted: impl Fn(&str) -> bool) -> Outcome<PathBuf> {
    let folder = folder();
    let pins = root().join("xtask/tools/frameworks.txt");
    let text = read(&pins)?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.filter_map(|line| line.split_once(": "));
    for (name, wanted) in lines.filter(|(name, _)| is_wanted(name)) {
        let args: Vec<&str> = wanted.split_whitespace().collect();
        let destination = folder.join(name);
        let done = destination.join("installed");
        let stamp = stamp(&args)?;
        if fs::read_to_string(&done).ok().as_ref() == Some(&stamp) {
            continue;
        }
        println!("installing {name}: {wanted}");
        if destination.exists() {
            fs::remove_dir_all(&destination)
                .map_err(|error| format!("{}: {error}", destination.display()))?;
        }
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        if name == LAUNCHERS {
            unpack(&folder.join(SOURCES), &destination, &args)?;
        } else {
            install_environment(&destination, &args)?;
        }
        fs::write(&done, stamp).map_err(|error| format!("{}: {error}", done.display()))?;
    }
    Ok(folder)
}

fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The arguments of pip, and the contents of the requirements files among them.
fn stamp(args: &[&str]) -> Outcome<String> {
    let mut stamp = args.join(" ");
    for file in args.iter().filter(|arg| arg.ends_with(".txt")) {
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

fn install_environment(destination: &Path, args: &[&str]) -> Outcome {
    run_command(
        Command::new("python3")
            .args(["-m", "venv"])
            .arg(destination),
    )?;
    run_command(pip(destination).arg("install").args(args))
}

/// Downloads source packages, and extracts the module of each.
fn unpack(python: &Path, destination: &Path, args: &[&str]) -> Outcome {
    fs::create_dir_all(destination)
        .map_err(|error| format!("{}: {error}", destination.display()))?;
    let download = [
        "download",
        "--no-deps",
        "--no-build-isolation",
        "--no-binary",
        ":all:",
    ];
    run_command(
        pip(python)
            .args(download)
            .arg("--dest")
            .arg(destination)
            .args(args),
    )?;
    for arg in args {
        let (name, version) = arg.split_once("==").ok_or("a pin has no version")?;
        let archive = destination.join(format!("{name}-{version}.tar.gz"));
        let inside = format!("{name}-{version}/{name}");
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--gzip", "--strip-components=1", "--file"]);
        run_command(
            tar.arg(&archive)
                .arg("--directory")
                .arg(destination)
                .arg(inside),
        )?;
    }
    Ok(())
}
