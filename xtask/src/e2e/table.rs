//! Generates docs/e2e.md.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{causes::Causes, report::Group};
use crate::kubernetes;

/// The text of the document.
pub(super) fn render(groups: &BTreeMap<String, Group>, causes: &Causes) -> String {
    let mut text = format!(
        "# Kubernetes conformance tests\n\n\
         Results of the end-to-end tests of Kubernetes {} with the label `Conformance` on the\n\
         embedded cluster with two nodes. The cluster does not pull images: it runs agnhost in\n\
         place of the agnhost image, and other commands from the host. `cargo xtask e2e`\n\
         generates this file from a complete run.\n\n\
         | Special interest group | Passed | Failed |\n|---|---|---|\n",
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
        let cause = causes.of(test).unwrap_or("Unknown cause");
        by_cause.entry(cause).or_default().push(test);
    }
    text += "\n## Failed tests by cause\n";
    for (cause, tests) in by_cause {
        let _ = writeln!(text, "\n{cause} ({}):\n", tests.len());
        for test in tests {
            let _ = writeln!(text, "- {}", escaped(test));
        }
    }
    text
}

/// The name of a test without its label, escaped for Markdown.
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
            text.contains("Unknown cause (1):\n\n- \\[sig-a] Other\n"),
            "{text}"
        );
    }
}
