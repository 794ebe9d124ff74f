//! `cargo xtask bench`: the benchmarks, each beside its peer in one run.

use crate::{
    frameworks, real,
    run::{Outcome, cargo, finish},
};

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
            .env(frameworks::FOLDER, frameworks::folder()),
    )
}
