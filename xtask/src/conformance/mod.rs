//! `cargo xtask conformance`: runs the tests of the rules and of the client's guarantees on the
//! embedded server and on real ones, and writes the tables of results, docs/conformance.md and
//! docs/client-points.md.

mod names;
mod results;
mod suites;
mod table;

use std::{fs, path::PathBuf};

pub(crate) use names::check;
pub(crate) use results::{Results, Status};
use suites::{SUITES, Suite};

use crate::{
    orphans,
    real::{Cluster, Release},
    run::{Outcome, cargo, read_lines, root, target},
};

/// The tests that can run on any server, as arguments of `cargo test`.
#[rustfmt::skip]
pub(crate) const SERVER_TESTS: [&str; 6] =
    ["--package", "longshore-conformance", "--test", "rules", "--test", "points"];
/// The variable with the file that describes the real server.
pub(crate) const REAL_SERVER_ENV: &str = "LONGSHORE_TEST_REAL";
/// The variable with the file to which tests write notes about the server.
const NOTES_ENV: &str = "LONGSHORE_TEST_NOTES";

impl Suite {
    /// The file of the suite's table.
    fn path(&self) -> PathBuf {
        root().join("docs").join(self.document)
    }
}

/// Runs both suites and writes the tables.
pub(crate) fn run() -> Outcome {
    orphans::watch(run_suites)
}

fn run_suites() -> Outcome {
    let embedded = tests(None)?;
    let mut real = Vec::new();
    for release in [Release::Current, Release::Old] {
        let cluster = Cluster::start(release)?;
        let results = tests(Some(&cluster))?;
        real.push((cluster.version.clone(), results));
    }
    for suite in &SUITES {
        let text = table::render(suite, &embedded, &real);
        let path = suite.path();
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    println!("embedded: {}", embedded.summary());
    for (version, results) in &real {
        println!("{version}: {}", results.summary());
    }
    let failed: usize = real.iter().map(|(_, results)| results.failed()).sum();
    if embedded.failed() + failed > 0 {
        return Err("some tests failed: see the tables".into());
    }
    Ok(())
}

/// Runs the tests on a server, shows their output, and parses it.
fn tests(cluster: Option<&Cluster>) -> Outcome<Results> {
    let notes = target().join(format!("conformance-notes-{}", std::process::id()));
    let _ = fs::remove_file(&notes);
    let mut command = cargo();
    command
        .args(["test", "--no-fail-fast"])
        .args(SERVER_TESTS)
        .env(NOTES_ENV, &notes)
        .env_remove(REAL_SERVER_ENV);
    if let Some(cluster) = cluster {
        command.env(REAL_SERVER_ENV, cluster.description());
    }
    let mut results = Results::default();
    // Failed tests are in the table, so the status of cargo is ignored.
    let outcome = read_lines(&mut command, |line| results.read_line(line));
    let text = fs::read_to_string(&notes).unwrap_or_default();
    let _ = fs::remove_file(&notes);
    text.lines().for_each(|line| results.read_note(line));
    if results.is_empty() {
        return Err(format!(
            "no test ran: {}",
            outcome.err().unwrap_or_default()
        ));
    }
    Ok(results)
}
