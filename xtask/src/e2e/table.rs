//! docs/e2e.md.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{causes::Causes, report::Group};
use crate::kubernetes;

/// The whole document.
pub(super) fn render(groups: &BTreeMap<String, Group>, causes: &Causes) -> String {
    let mut text = format!(
        "# Kubernetes' own conformance tests\n\n\
         The end-to-end tests of Kubernetes {} that are labelled `Conformance`, run on the\n\
         embedded cluster with one node. Images are not pulled: where a test's image is agnhost,\n\
         its program is used; other commands are those of the machine. This file is written by\n\
         `cargo xtask e2e`, from a run of all of them.\n\n\
         | special interest group | passed | failed |\n|---|---|---|\n",
        kubernetes::VERSION,
    );
    for (name, group) in groups {
        let (passed, failed) = (group.passed.len(), group.failed.len());
        let _ = writeln!(text, "| {name} | {passed} | {failed} |");
    }
    let passed: usize = groups.values().map(|group| group.passed.len()).sum();
    let all: usize = groups.values().map(Group::count).sum();
    let _ = writeln!(text, "| all | {passed} | {} |", all - passed);
    let mut by_cause: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let failed = groups.values().flat_map(|group| &group.failed);
    for (test, _) in failed {
        let cause = causes.of(test).unwrap_or("The cause is not known");
        by_cause.entry(cause).or_default().push(test);
    }
    text += "\n## What failed, by cause\n";
    for (cause, tests) in by_cause {
        let _ = writeln!(text, "\n{cause} ({}):\n", tests.len());
        for test in tests {
            let _ = writeln!(text, "- {}", escaped(test));
        }
    }
    text
}

/// A test's name without its label, for Markdown.
fn escaped(test: &str) -> String {
    let test = test.replace(" [Conformance]", "");
    test.replace('[', "\\[")
        .replace('<', "\\<")
        .replace('*', "\\*")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn failures_are_listed_by_cause() {
        let failed = |name: &str| (name.to_owned(), String::new());
        let group = Group {
            passed: vec!["[sig-a] passes".into()],
            failed: vec![
                failed("[sig-a] Webhook [Conformance]"),
                failed("[sig-a] Other"),
            ],
        };
        let groups = BTreeMap::from([("a".to_owned(), group)]);
        let causes = Causes::parse("No webhooks\n  Webhook\n").unwrap();
        let text = render(&groups, &causes);
        assert!(text.contains("| all | 1 | 2 |\n"), "{text}");
        assert!(
            text.contains("No webhooks (1):\n\n- \\[sig-a] Webhook\n"),
            "{text}"
        );
        assert!(
            text.contains("not known (1):\n\n- \\[sig-a] Other\n"),
            "{text}"
        );
    }
}
