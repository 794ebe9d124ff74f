//! `cargo xtask bench`: runs the benchmarks together with those of the compared software.

use std::{path::PathBuf, process::Command};

use crate::{
    frameworks, packages, real,
    run::{Outcome, cargo, root, run_command, target},
};

/// The variable with the path of the client-go benchmark program.
const CLIENT_GO_ENV: &str = "LONGSHORE_BENCH_CLIENT_GO";

/// Which benchmarks to run.
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
    run_command(
        cargo()
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

/// Builds the program that measures client-go, if it is selected and Go is installed.
fn build_client_go(arguments: &Arguments) -> Outcome<Option<PathBuf>> {
    // The values of options are numbers.
    let is_name = |word: &&String| !word.starts_with('-') && word.parse::<u64>().is_err();
    let mut names = arguments.rest.iter().filter(is_name).peekable();
    let is_wanted = names.peek().is_none() || names.any(|name| name == "client");
    if !is_wanted || packages::require_go().is_err() {
        return Ok(None);
    }
    let program = target().join("bench/client-go");
    run_command(
        Command::new("go")
            .current_dir(root().join("crates/bench/go"))
            .args(["build", "-mod=readonly", "-trimpath", "-o"])
            .arg(&program)
            .arg(".")
            .env("GOFLAGS", "")
            .env("CGO_ENABLED", "0"),
    )?;
    Ok(Some(program))
}
