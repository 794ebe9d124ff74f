//! The table of results, docs/controllers.md.

use std::{collections::BTreeSet, fmt::Write as _};

use super::Combination;
use crate::{
    conformance::{Results, Status},
    kubernetes::VERSION,
};

const HEAD: &str = "\
# Control planes

The embedded cluster consists of an API server, and of controllers and a scheduler that are
ordinary clients of it. Each of both can be replaced by the programs of Kubernetes. The tests in
`crates/interop/conformance/tests/controllers` play the part of the kubelets: they create nodes, renew
their Leases and report the states of pods. They check what the controllers and the scheduler
do. `cargo xtask controllers` runs the same tests on all four combinations and writes this page.

";

/// Renders the page.
pub(super) fn render(columns: &[(Combination, Results)]) -> String {
    let mut text = HEAD.to_owned();
    let _ = writeln!(text, "The programs of Kubernetes are those of {VERSION}.\n");
    let mut head = "| test |".to_owned();
    let mut line = "|---|".to_owned();
    let mut totals = "| **total** |".to_owned();
    for (combination, results) in columns {
        let _ = write!(head, " {combination} |");
        line.push_str("---|");
        let _ = write!(totals, " {} |", results.summary());
    }
    let _ = writeln!(text, "{head}\n{line}\n{totals}");
    let tests: BTreeSet<&String> = columns
        .iter()
        .flat_map(|(_, results)| results.statuses.keys())
        .collect();
    for test in tests {
        let _ = write!(text, "| {} |", test.replace('_', " "));
        for (_, results) in columns {
            let word = match results.statuses.get(test) {
                Some(Status::Passed) => "pass",
                Some(Status::Failed) => "**fail**",
                Some(Status::Ignored) | None => "not run",
            };
            let _ = write!(text, " {word} |");
        }
        text.push('\n');
    }
    text
}
