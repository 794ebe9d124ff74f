//! `cargo xtask conformance`: the rules' tests on the embedded server and on
//! the real one, and the table of what came of it, docs/conformance.md.

mod names;
mod results;
mod rules;
mod table;

use std::{fs, path::PathBuf};

pub(crate) use names::check;
use results::Results;

use crate::{
    leftovers, real,
    run::{Outcome, cargo, read_lines, root, target},
};

/// The tests that go to whichever server they are given.
#[rustfmt::skip]
pub(crate) const JUDGED: [&str; 4] = ["--package", "longshore-conformance", "--test", "rules"];
/// Tells the tests where the real server is.
pub(crate) const REAL: &str = "LONGSHORE_TEST_REAL";
/// Names the file to which tests write what they remark.
const NOTES: &str = "LONGSHORE_TEST_NOTES";

/// How to run them.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Build without optimisation: sooner ready, slower to run.
    #[arg(long)]
    dev: bool,
}

fn document() -> PathBuf {
    root().join("docs/conformance.md")
}

/// Runs both, writes the table.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    leftovers::watch(|| judge(arguments))
}

fn judge(arguments: &Arguments) -> Outcome {
    let embedded = tests(arguments.dev, None)?;
    let cluster = real::Cluster::start()?;
    let real = tests(arguments.dev, Some(&cluster))?;
    let text = table::render(&cluster.version, &embedded, &real);
    drop(cluster);
    let path = document();
    fs::create_dir_all(root().join("docs"))
        .and_then(|()| fs::write(&path, text))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    println!("embedded: {}", embedded.summary());
    println!("real:     {}", real.summary());
    println!("wrote {}", path.display());
    if embedded.failed() + real.failed() > 0 {
        return Err("some tests failed: the table says which".into());
    }
    Ok(())
}

/// Runs the tests on a server, shows what they print, and reads it.
fn tests(dev: bool, cluster: Option<&real::Cluster>) -> Outcome<Results> {
    let notes = target().join(format!("conformance-notes-{}", std::process::id()));
    let _ = fs::remove_file(&notes);
    let mut command = cargo();
    command.arg("test");
    if !dev {
        command.arg("--release");
    }
    command.args(JUDGED).env(NOTES, &notes).env_remove(REAL);
    if let Some(cluster) = cluster {
        command.env(REAL, cluster.description());
    }
    let mut results = Results::default();
    // Tests that fail are no reason to stop: the table says so.
    let done = read_lines(&mut command, |line| results.read_line(line));
    let text = fs::read_to_string(&notes).unwrap_or_default();
    let _ = fs::remove_file(&notes);
    text.lines().for_each(|line| results.read_note(line));
    if results.is_empty() {
        return Err(format!("no test ran: {}", done.err().unwrap_or_default()));
    }
    Ok(results)
}
