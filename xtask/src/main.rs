//! Chores of the repository: `cargo xtask test | conformance | e2e | tidy | bench |
//! fuzz | tools | image | real | real-apiserver | static | wheel`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers"
)]

mod bench;
mod conformance;
mod e2e;
mod embedded;
mod frameworks;
mod fuzz;
mod golang;
mod image;
mod kubernetes;
mod leftovers;
mod packages;
mod real;
mod run;
mod statically;
mod test;
mod tidy;
mod tools;
mod wheel;

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
    /// Run the tests of rules and points on the embedded server and on a real one, and write
    /// docs/conformance.md and docs/client-points.md.
    Conformance(conformance::Arguments),
    /// Run Kubernetes' own conformance tests on the embedded cluster, by special interest
    /// group; needs Go.
    E2e(e2e::Arguments),
    /// Check the map of the crates and the habits that no compiler checks.
    Tidy,
    /// Run the benchmarks, each beside its peer.
    Bench(bench::Arguments),
    /// Look for inputs that break the properties in `fuzz/`.
    Fuzz(fuzz::Arguments),
    /// Fetch the pinned programs that the tests use as judges.
    Tools,
    /// Build the kube-apiserver of Kubernetes 1.20, once, for `test --cluster old`.
    RealApiserver,
    /// A single-node Kubernetes of today on this machine: build, up, down, status.
    Real(kubernetes::Arguments),
    /// Make OCI archives of the static program, and of Python for examples.
    Image(image::Arguments),
    /// Build the program without the system's libraries, for images that have others or none.
    Static,
    /// Build the wheel for Python, and run Python's tests on it.
    Wheel,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().chore {
        Chore::Test(arguments) => test::run(&arguments),
        Chore::Tidy => tidy::run(),
        Chore::Bench(arguments) => bench::run(&arguments),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Conformance(arguments) => conformance::run(&arguments),
        Chore::RealApiserver => real::build(),
        Chore::Real(arguments) => kubernetes::run(&arguments),
        Chore::E2e(arguments) => e2e::run(&arguments),
        Chore::Tools => tools::fetch().all(),
        Chore::Image(arguments) => image::run(&arguments),
        Chore::Static => statically::run().map(drop),
        Chore::Wheel => wheel::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}
