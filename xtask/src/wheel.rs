//! `cargo xtask wheel`: builds the Python wheel and tests the installed wheel.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use clap::Args;

use crate::run::{Outcome, cargo, root, run_command, target};

/// The maximum size of the wheel, in bytes.
const MAX_SIZE: u64 = 60_000_000;

/// Options for building and testing the wheel.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Build for Linux distributions since 2014 (glibc 2.17), with zig as the linker
    #[arg(long)]
    manylinux: bool,
    /// Python with which the wheel is tested; can be repeated [default: python3]
    #[arg(long, value_name = "PROGRAM")]
    python: Vec<PathBuf>,
    /// Also run all tests of the package with the wheel, built in the release profile
    #[arg(long)]
    all: bool,
}

/// Builds the wheel and the source distribution into `target/wheels`. Installs the wheel into a
/// virtual environment of each Python, and runs the tests of the installed wheel there.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let wheels = target().join("wheels");
    let failed = |error| format!("{}: {error}", wheels.display());
    if wheels.exists() {
        fs::remove_dir_all(&wheels).map_err(failed)?;
    }
    let wheel = build(arguments.manylinux, &wheels)?;
    let size = fs::metadata(&wheel).map_err(failed)?.len();
    if size > MAX_SIZE {
        return Err(format!(
            "{} has {size} bytes, more than {MAX_SIZE}",
            wheel.display()
        ));
    }
    let mut pythons = arguments.python.clone();
    if pythons.is_empty() {
        pythons.push("python3".into());
    }
    for (number, python) in pythons.iter().enumerate() {
        println!("testing with {}", python.display());
        let environment = environment(python, &format!("wheel-{number}"))?;
        let python = environment.join("bin/python3");
        run_command(pip(&python).arg("install").arg(&wheel).arg("pytest"))?;
        let test = "crates/program/python/tests/python/installed_wheel.py";
        run_command(
            Command::new(&python)
                .args(["-W", "error", test])
                .current_dir(root()),
        )?;
        if arguments.all {
            test_package(&python)?;
        }
    }
    println!("built {} ({:.1} MB)", wheel.display(), size as f64 / 1e6);
    Ok(())
}

/// Builds the wheel, as `pip install` does, and the source distribution.
fn build(manylinux: bool, wheels: &Path) -> Outcome<PathBuf> {
    let environment = environment(Path::new("python3"), "wheel-build")?;
    let python = environment.join("bin/python3");
    let begin = Instant::now();
    run_command(pip(&python).args(["install", "build"]))?;
    let mut command = Command::new(&python);
    command
        .args(["-m", "build", "--outdir"])
        .arg(wheels)
        .arg(root().join("crates/program/python"))
        .env("CARGO_TARGET_DIR", target().join("wheel"));
    if manylinux {
        command.env("MATURIN_PEP517_ARGS", "--zig --compatibility manylinux2014");
    }
    run_command(&mut command)?;
    println!("built in {} s", begin.elapsed().as_secs());
    let files = fs::read_dir(wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
    let mut files = files.flatten().map(|entry| entry.path());
    files
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| format!("{}: no wheel", wheels.display()))
}

/// Creates an empty virtual environment.
fn environment(python: &Path, name: &str) -> Outcome<PathBuf> {
    let folder = target().join("tools").join(name);
    run_command(
        Command::new(python)
            .args(["-m", "venv", "--clear"])
            .arg(&folder),
    )?;
    Ok(folder)
}

/// Runs the tests of the package with the wheel of an environment.
fn test_package(python: &Path) -> Outcome {
    run_command(cargo().args(["build", "--release", "--package", "longshore-cli"]))?;
    run_command(
        cargo()
            .args(["test", "--release", "--package", "longshore-python"])
            .env("LONGSHORE_TEST_WHEEL", "1")
            .env("LONGSHORE_TEST_PYTHON", python),
    )
}

fn pip(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "--disable-pip-version-check", "--quiet"]);
    command
}
