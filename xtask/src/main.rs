//! Chores of the repository: `cargo xtask test | tidy | bench | fuzz | tools`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers"
)]

mod bench;
mod fuzz;
mod leftovers;
mod run;
mod test;
mod tidy;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of the repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Build everything and run every test; leaves no process behind.
    Test(test::Arguments),
    /// Check the map of the crates and the habits that no compiler checks.
    Tidy,
    /// Run the benchmarks, each beside its peer.
    Bench(bench::Arguments),
    /// Look for inputs that break the properties in `fuzz/`.
    Fuzz(fuzz::Arguments),
    /// Fetch the pinned programs that the tests use as judges.
    Tools,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().chore {
        Chore::Test(arguments) => test::run(&arguments),
        Chore::Tidy => tidy::run(),
        Chore::Bench(arguments) => bench::run(&arguments),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Tools => tools::fetch().all(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}
