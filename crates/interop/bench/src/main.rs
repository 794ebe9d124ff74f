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
mod outputs;
mod pack;
mod page;
mod pods;
mod program;
mod python;
mod report;
mod resolver;
mod rollouts;
mod run_true;
mod server;
mod side_by_side;
mod start;
mod store;
mod sweeps;
mod writer;

use std::num::NonZeroUsize;

use clap::Parser;
use report::{Failure, Report};

/// Runs the named benchmarks, or all benchmarks.
#[derive(Parser)]
#[command(name = "cargo xtask bench")]
struct Arguments {
    /// start, store, client, python, resolver, pack, run, dev, chatty, outputs, sweeps, ui,
    /// side-by-side, server, rollouts, writer, build; launcher means pack, run, dev, chatty,
    /// outputs, sweeps and ui
    names: Vec<String>,
    /// Number of pods for `store`, `server`, `client`, `python` and `resolver`, and of objects
    /// for `writer`
    #[arg(long, default_value_t = 10_000)]
    pods: usize,
    /// Number of runs per figure; the median is reported
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Divide the sizes of `outputs`, `sweeps` and `ui` by this number, to try them
    #[arg(long, default_value = "1", value_name = "N")]
    shrink: NonZeroUsize,
}

const NAMES: [&str; 17] = [
    "start",
    "client",
    "python",
    "resolver",
    "pack",
    "run",
    "dev",
    "chatty",
    "outputs",
    "sweeps",
    "ui",
    "side-by-side",
    "store",
    "server",
    "rollouts",
    "writer",
    "build",
];

/// The benchmarks that the name `launcher` selects.
const LAUNCHER: [&str; 7] = ["pack", "run", "dev", "chatty", "outputs", "sweeps", "ui"];

/// The number of combinations of `sweeps`.
const COMBINATIONS: usize = 1_000;

fn main() -> Result<(), Failure> {
    // Some benchmarks start this program as other processes.
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some(client::CHILD) => client::child(arguments),
        Some(page::TASK) => page::write_lines(arguments),
        _ => benchmarks(),
    }
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
    let shrink = arguments.shrink.get();
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
            "outputs" => outputs::run(&mut report, arguments.runs, shrink)?,
            "sweeps" => {
                let combinations = (COMBINATIONS / shrink).max(1);
                sweeps::run(&mut report, arguments.runs, combinations)?;
            }
            "ui" => page::run(&mut report, shrink)?,
            "side-by-side" => side_by_side::run(&mut report, arguments.runs)?,
            "run" => run_true::run(&mut report, arguments.runs)?,
            _ => store::run(&mut report, arguments.runs, arguments.pods).await?,
        }
    }
    Ok(())
}
