//! `cargo xtask e2e`: Kubernetes' own conformance tests judge the embedded cluster. They are
//! built from its Go module, as is agnhost, the program of most of their images. Counts what
//! passes by special interest group; a run of all of them writes docs/e2e.md.

mod causes;
mod images;
mod report;
mod suite;
mod table;

use std::fs;

use causes::Causes;
use suite::Suite;

use crate::{
    kubernetes, packages,
    run::{Outcome, root, target},
};

/// Which tests.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only those of a special interest group, as api-machinery; all of them without.
    #[arg(long)]
    sig: Option<String>,
    /// How many run at a time on one cluster. Those that need a cluster for themselves get one
    /// each, four at a time.
    #[arg(long, default_value_t = 24)]
    procs: usize,
    /// Run none: write the table again from the last run of all, as after a change of the
    /// causes.
    #[arg(long, conflicts_with_all = ["sig", "focus", "procs"])]
    report: bool,
    /// Only those whose name matches this regular expression.
    focus: Option<String>,
}

/// Runs the tests. An error names those that fail without a known cause.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let causes = Causes::read()?;
    let all = arguments.sig.is_none() && arguments.focus.is_none();
    let reports = target().join(if all { "e2e" } else { "e2e-part" });
    if !arguments.report {
        packages::require_go()?;
        kubernetes::build_tests()?;
        suite::clear(&reports)?;
        let sig = arguments.sig.as_deref().unwrap_or(r"[a-z-]+");
        let words = arguments.focus.as_deref().unwrap_or("");
        let suite = Suite {
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
            "these failed, and {} has no cause for them:\n  {}",
            causes::FILE,
            unexplained.join("\n  ")
        )),
    }
}
