//! `cargo xtask bench`: the benchmarks, each beside its peer in one run.

use std::{path::PathBuf, process::Command};

use crate::{
    frameworks, packages, real,
    run::{Outcome, cargo, finish, root, target},
};

/// Names client-go's program for the benchmarks.
const CLIENT_GO: &str = "LONGSHORE_BENCH_CLIENT_GO";

/// Which benchmarks to run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Passed on: the names of the benchmarks (all of them without), or --help.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Builds and runs them.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    finish(cargo().args(["build", "--release", "--package", "longshore-cli"]))?;
    let client_go = build_client_go(arguments)?.unwrap_or_default();
    finish(
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
            .env(real::GIVEN, real::Release::Today.programs())
            .env(frameworks::FOLDER, frameworks::folder())
            .env(CLIENT_GO, client_go),
    )
}

/// Builds the program that measures client-go, if it is wanted and Go is there.
fn build_client_go(arguments: &Arguments) -> Outcome<Option<PathBuf>> {
    // Options have numbers.
    let is_name = |word: &&String| !word.starts_with('-') && word.parse::<u64>().is_err();
    let mut names = arguments.rest.iter().filter(is_name).peekable();
    let is_wanted = names.peek().is_none() || names.any(|name| name == "client");
    if !is_wanted || packages::require_go().is_err() {
        return Ok(None);
    }
    let program = target().join("bench/client-go");
    finish(
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
