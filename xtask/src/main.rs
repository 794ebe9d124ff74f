//! Development tasks of the repository: `cargo xtask test | conformance | controllers | charts | e2e |
//! tidy | bench | fuzz | tools | image | real | real-apiserver | static | wheel`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program"
)]

mod bench;
mod charts;
mod conformance;
mod controllers;
mod e2e;
mod embedded;
mod frameworks;
mod fuzz;
mod go_clients;
mod image;
mod kubernetes;
mod operators;
mod orphans;
mod packages;
mod real;
mod run;
mod static_build;
mod test;
mod tidy;
mod tools;
mod wheel;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Run development tasks of the repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build everything and run every test; fail if a test leaves processes running.
    Test(test::Arguments),
    /// Run the conformance tests on the embedded server and on real ones, and generate
    /// docs/conformance.md and docs/client-points.md.
    Conformance,
    /// Run the tests of the control plane on all combinations of API server and controllers, ours
    /// and Kubernetes', and generate docs/controllers.md. Requires Go.
    Controllers(controllers::Arguments),
    /// Run the Kubernetes conformance tests on the embedded cluster, and count the results by
    /// special interest group. Requires Go.
    E2e(e2e::Arguments),
    /// Run the envtest suites of other projects on the embedded API server and on Kubernetes' own,
    /// and compare the results. Requires Go.
    Operators(operators::Arguments),
    /// Install charts on the embedded cluster with helm and test what they run, and generate
    /// docs/charts.md. Requires Go.
    Charts(charts::Arguments),
    /// Check the crates' dependencies and the conventions that the compiler does not check.
    Tidy,
    /// Run the benchmarks of Longshore and of the compared software.
    Bench(bench::Arguments),
    /// Search for inputs that break the properties in `fuzz/`.
    Fuzz(fuzz::Arguments),
    /// Download the pinned reference clients that the tests use.
    Tools,
    /// Build the kube-apiserver of Kubernetes 1.20 for `test --cluster old`, once.
    RealApiserver,
    /// Manage a single-node Kubernetes cluster of the current version on this machine.
    Real(kubernetes::Arguments),
    /// Build OCI archives of the static program and of Python.
    Image(image::Arguments),
    /// Build a static program, for images without the system libraries.
    Static,
    /// Build the Python wheel and test it in a virtual environment.
    Wheel(wheel::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Test(arguments) => test::run(arguments),
        Task::Tidy => tidy::run(),
        Task::Bench(arguments) => bench::run(&arguments),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
        Task::Conformance => conformance::run(),
        Task::Controllers(arguments) => controllers::run(&arguments),
        Task::RealApiserver => real::build(),
        Task::Real(arguments) => kubernetes::run(&arguments),
        Task::E2e(arguments) => e2e::run(&arguments),
        Task::Operators(arguments) => operators::run(&arguments),
        Task::Charts(arguments) => charts::run(&arguments),
        Task::Tools => tools::fetch().require_all(),
        Task::Image(arguments) => image::run(&arguments),
        Task::Static => static_build::run().map(drop),
        Task::Wheel(arguments) => wheel::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
