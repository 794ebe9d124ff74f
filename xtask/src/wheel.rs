//! `cargo xtask wheel`: the wheel for Python, tried where it is installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::{Outcome, cargo, finish, root, target};

/// Builds the wheel into `target/wheels`, installs it into an environment of its
/// own, and runs Python's tests there.
pub(crate) fn run() -> Outcome {
    let wheels = target().join("wheels");
    let environment = target().join("tools/wheel");
    let failed = |error| format!("{}: {error}", wheels.display());
    if wheels.exists() {
        fs::remove_dir_all(&wheels).map_err(failed)?;
    }
    finish(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&environment),
    )?;
    let python = environment.join("bin/python3");
    // The build's tool is pinned in pyproject.toml; it gets a folder of its own, for
    // what it builds has other features than the workspace.
    finish(
        pip(&python)
            .args(["wheel", "--no-deps", "--wheel-dir"])
            .arg(&wheels)
            .arg(root().join("crates/python"))
            .env("CARGO_TARGET_DIR", target().join("wheel")),
    )?;
    let built: Vec<PathBuf> = fs::read_dir(&wheels)
        .map_err(failed)?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    finish(pip(&python).args(["install", "--no-deps"]).args(&built))?;
    // Pods of the tests need the program.
    finish(cargo().args(["build", "--release", "--package", "longshore-cli"]))?;
    finish(
        cargo()
            .args(["test", "--release", "--package", "longshore-python"])
            .env("LONGSHORE_TEST_WHEEL", "1")
            .env("LONGSHORE_TEST_PYTHON", &python),
    )?;
    for wheel in built {
        println!("built {}", wheel.display());
    }
    Ok(())
}

fn pip(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "--disable-pip-version-check"]);
    command
}
