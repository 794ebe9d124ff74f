//! `cargo xtask e2e`: runs the Kubernetes conformance tests on the embedded cluster. They are
//! built from the Go module of Kubernetes, as is agnhost, the program of most of their images.
//! Counts the results by special interest group; a run of all tests writes docs/e2e.md.

mod causes;
mod images;
mod report;
mod suite;
mod table;

use std::{fs, path::PathBuf};

use causes::Causes;
use suite::Suite;

use crate::{
    kubernetes, packages,
    run::{Outcome, root, target},
};

/// The tests to run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run only the tests of a special interest group, for example api-machinery; default: all.
    #[arg(long)]
    sig: Option<String>,
    /// Number of parallel tests on one cluster. Each serial test runs on its own cluster.
    #[arg(long, default_value_t = 24)]
    procs: usize,
    /// The program `longshore` to test; default: a release build, which is made first.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Run no tests: generate the table from the last complete run, for example after a change
    /// of the causes.
    #[arg(long, conflicts_with_all = ["sig", "focus", "procs", "program"])]
    report: bool,
    /// Run only tests whose name matches this regular expression.
    focus: Option<String>,
}

/// Runs the tests. The error names the failed tests without a known cause.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let causes = Causes::read()?;
    let all = arguments.sig.is_none() && arguments.focus.is_none();
    let reports = target().join(if all { "e2e" } else { "e2e-part" });
    if !arguments.report {
        packages::require_go()?;
        // Tests of Services and of DNS call them in pods.
        packages::install(&[("nc", "netcat-openbsd"), ("dig", "bind9-dnsutils")])?;
        kubernetes::build_tests()?;
        suite::clear(&reports)?;
        let sig = arguments.sig.as_deref().unwrap_or(r"[a-z-]+");
        let words = arguments.focus.as_deref().unwrap_or("");
        let suite = Suite {
            program: arguments.program.as_deref(),
            focus: &format!(r"\[sig-{sig}\].*({words})"),
            procs: arguments.procs,
            reports: &reports,
        };
        suite.run()?;
    }
    let groups = report::read(suite::reports(&reports)?.iter())?;
    let mut unexplained = Vec::new();
    for (name, group) in &groups {
        for (test, message) in &group.failed {
            println!("failed: [{name}] {test}: {message}");
            if causes.of(test).is_none() {
                unexplained.push(test.as_str());
            }
        }
    }
    for (name, group) in &groups {
        println!("{name}: {} of {} passed", group.passed.len(), group.count());
    }
    if all {
        let path = root().join("docs/e2e.md");
        fs::write(&path, table::render(&groups, &causes))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    match unexplained.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "tests failed without a known cause in {}:\n  {}",
            causes::FILE,
            unexplained.join("\n  ")
        )),
    }
}
