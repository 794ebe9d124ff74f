//! `cargo xtask bench`: runs the benchmarks of Longshore and of the compared software together.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    frameworks, packages, real,
    run::{Outcome, cargo, root, run_command, target},
    tools,
};

/// The variable with the path of the client-go benchmark program.
const CLIENT_GO_ENV: &str = "LONGSHORE_BENCH_CLIENT_GO";

/// The variables with a Python that has the compared clients, and with the folder of our package.
const PYTHON_ENV: &str = "LONGSHORE_BENCH_PYTHON";
const PACKAGE_ENV: &str = "LONGSHORE_BENCH_PACKAGE";

/// The benchmarks to run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Arguments for the benchmark program: names of benchmarks (default: all), or --help.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Builds and runs the benchmarks.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    run_command(cargo().args(["build", "--release", "--package", "longshore-cli"]))?;
    let client_go = build_client_go(arguments)?.unwrap_or_default();
    let mut benchmarks = cargo();
    if selects(arguments, "python") {
        benchmarks
            .env(PYTHON_ENV, tools::benchmarked_clients()?)
            .env(PACKAGE_ENV, build_python()?);
    }
    run_command(
        benchmarks
            .args([
                "run",
                "--quiet",
                "--release",
                "--package",
                "longshore-bench",
                "--",
            ])
            .args(&arguments.rest)
            .env(
                real::APISERVER_FOLDER_ENV,
                real::Release::Current.programs(),
            )
            .env(frameworks::FOLDER_ENV, frameworks::folder())
            .env(CLIENT_GO_ENV, client_go),
    )
}

/// Returns true if the arguments name a benchmark, or none.
fn selects(arguments: &Arguments, benchmark: &str) -> bool {
    // The values of options are numbers.
    let is_name = |word: &&String| !word.starts_with('-') && word.parse::<u64>().is_err();
    let mut names = arguments.rest.iter().filter(is_name).peekable();
    names.peek().is_none() || names.any(|name| name == benchmark)
}

/// Builds the Python package; returns the folder with it.
fn build_python() -> Outcome<PathBuf> {
    run_command(cargo().args(["build", "--release", "--package", "longshore-python"]))?;
    let folder = target().join("bench/python");
    let package = folder.join("longshore");
    let sources = root().join("crates/program/python/python/longshore");
    let library = target().join("release/liblongshore_native.so");
    let made = copy(&sources, &package)
        .and_then(|()| fs::copy(library, package.join("_native.abi3.so")).map(drop));
    made.map_err(|error| format!("{}: {error}", package.display()))?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Builds the program that measures client-go, if it is selected and Go is installed.
fn build_client_go(arguments: &Arguments) -> Outcome<Option<PathBuf>> {
    if !selects(arguments, "client") || packages::require_go().is_err() {
        return Ok(None);
    }
    let program = target().join("bench/client-go");
    run_command(
        Command::new("go")
            .current_dir(root().join("crates/interop/bench/go"))
            .args(["build", "-mod=readonly", "-trimpath", "-o"])
            .arg(&program)
            .arg(".")
            .env("GOFLAGS", "")
            .env("CGO_ENABLED", "0"),
    )?;
    Ok(Some(program))
}
