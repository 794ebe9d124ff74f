//! `cargo xtask conformance`: the tests of the rules and of the client's points
//! on the embedded server and on real ones, and the tables of what came of it,
//! docs/conformance.md and docs/client-points.md.

mod names;
mod results;
mod subjects;
mod table;

use std::{fs, path::PathBuf};

pub(crate) use names::check;
use results::Results;
use subjects::{SUBJECTS, Subject};

use crate::{
    leftovers,
    real::{Cluster, Release},
    run::{Outcome, cargo, read_lines, root, target},
};

/// The tests that go to whichever server they are given.
#[rustfmt::skip]
pub(crate) const JUDGED: [&str; 6] =
    ["--package", "longshore-conformance", "--test", "rules", "--test", "points"];
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

impl Subject {
    /// Where its table is.
    fn path(&self) -> PathBuf {
        root().join("docs").join(self.document)
    }
}

/// Runs both, writes the tables.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    leftovers::watch(|| judge(arguments))
}

fn judge(arguments: &Arguments) -> Outcome {
    let embedded = tests(arguments.dev, None)?;
    let mut real = Vec::new();
    for release in [Release::Today, Release::Old] {
        let cluster = Cluster::start(release)?;
        let results = tests(arguments.dev, Some(&cluster))?;
        real.push((cluster.version.clone(), results));
    }
    for subject in &SUBJECTS {
        let text = table::render(subject, &embedded, &real);
        let path = subject.path();
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    println!("embedded: {}", embedded.summary());
    for (version, results) in &real {
        println!("{version}: {}", results.summary());
    }
    let failed: usize = real.iter().map(|(_, results)| results.failed()).sum();
    if embedded.failed() + failed > 0 {
        return Err("some tests failed: the tables say which".into());
    }
    Ok(())
}

/// Runs the tests on a server, shows what they print, and reads it.
fn tests(dev: bool, cluster: Option<&Cluster>) -> Outcome<Results> {
    let notes = target().join(format!("conformance-notes-{}", std::process::id()));
    let _ = fs::remove_file(&notes);
    let mut command = cargo();
    command.arg("test");
    if !dev {
        command.arg("--release");
    }
    command
        .args(["--no-fail-fast"])
        .args(JUDGED)
        .env(NOTES, &notes)
        .env_remove(REAL);
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
