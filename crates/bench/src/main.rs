//! Benchmarks that compare Longshore with other programs in one run:
//! `cargo xtask bench [NAME…]`.
//!
//! Absolute times vary between machines and runs, so quote the ratios.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers"
)]

mod build;
mod chatty;
mod client;
mod dev;
mod pack;
mod pods;
mod program;
mod python;
mod report;
mod resolver;
mod rollouts;
mod run_true;
mod server;
mod start;
mod store;
mod writer;

use clap::Parser;
use report::{Failure, Report};

/// Runs the named benchmarks, or all benchmarks.
#[derive(Parser)]
#[command(name = "cargo xtask bench")]
struct Arguments {
    /// start, store, client, python, resolver, pack, run, dev, chatty, server, rollouts, writer, build;
    /// launcher means pack, run, dev and chatty
    names: Vec<String>,
    /// Number of pods for `store`, `server`, `client`, `python` and `resolver`, and of objects
    /// for `writer`
    #[arg(long, default_value_t = 10_000)]
    pods: usize,
    /// Number of runs per figure; the median is reported
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

const NAMES: [&str; 13] = [
    "start", "client", "python", "resolver", "pack", "run", "dev", "chatty", "store", "server",
    "rollouts", "writer", "build",
];

/// The benchmarks that the name `launcher` selects.
const LAUNCHER: [&str; 4] = ["pack", "run", "dev", "chatty"];

fn main() -> Result<(), Failure> {
    // Measures one client in a separate process, which the benchmark `client` starts.
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(client::CHILD) {
        return client::child(arguments);
    }
    benchmarks()
}

#[tokio::main]
async fn benchmarks() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let wanted: Vec<&str> = arguments
        .names
        .iter()
        .flat_map(|name| match name.as_str() {
            "launcher" => LAUNCHER.to_vec(),
            name => vec![name],
        })
        .collect();
    if let Some(name) = wanted.iter().find(|name| !NAMES.contains(name)) {
        return Err(format!(
            "unknown benchmark {name:?}: use one of {}",
            NAMES.join(", ")
        )
        .into());
    }
    for name in NAMES {
        if !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        let mut report = Report::new(name);
        match name {
            "start" => start::run(&mut report, arguments.runs).await?,
            "client" => client::run(&mut report, arguments.runs, arguments.pods).await?,
            "python" => python::run(&mut report, arguments.runs, arguments.pods).await?,
            "resolver" => resolver::run(&mut report, arguments.runs, arguments.pods).await?,
            "writer" => writer::run(&mut report, arguments.pods).await?,
            "server" => server::run(&mut report, arguments.runs, arguments.pods).await?,
            "rollouts" => rollouts::run(&mut report).await?,
            "pack" => pack::run(&mut report, arguments.runs)?,
            "build" => build::run(&mut report)?,
            "chatty" => chatty::run(&mut report)?,
            "dev" => dev::run(&mut report, arguments.runs)?,
            "run" => run_true::run(&mut report, arguments.runs)?,
            _ => store::run(&mut report, arguments.runs, arguments.pods).await?,
        }
    }
    Ok(())
}
