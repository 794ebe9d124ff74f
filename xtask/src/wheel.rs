//! `cargo xtask wheel`: builds the Python wheel and tests the installed wheel.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::{Outcome, cargo, root, run_command, target};

/// Builds the wheel into `target/wheels`, installs it into a virtual environment, and runs
/// the Python tests there.
pub(crate) fn run() -> Outcome {
    let wheels = target().join("wheels");
    let environment = target().join("tools/wheel");
    let failed = |error| format!("{}: {error}", wheels.display());
    if wheels.exists() {
        fs::remove_dir_all(&wheels).map_err(failed)?;
    }
    run_command(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&environment),
    )?;
    let python = environment.join("bin/python3");
    // pyproject.toml pins the build tool. It uses a separate target folder because it builds
    // with other features than the workspace.
    run_command(
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
    run_command(pip(&python).args(["install", "--no-deps"]).args(&built))?;
    // The pods of the tests run the program.
    run_command(cargo().args(["build", "--release", "--package", "longshore-cli"]))?;
    run_command(
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
