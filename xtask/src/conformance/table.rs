//! The table in the docs.

use std::fmt::Write as _;

use super::{
    results::{End, Note, Results},
    rules::RULES,
};

/// The whole document.
pub(super) fn render(version: &str, embedded: &Results, real: &Results) -> String {
    let mut text = format!(
        "# Conformance\n\n\
         The rules that clients of the Kubernetes API depend on, each with its tests in\n\
         `crates/conformance/tests/rules`. They are written from the rules, at the level of\n\
         HTTP, and run on the embedded server (`cargo xtask test`) and on a real kube-apiserver\n\
         with etcd ({version}, without controllers: `cargo xtask real-apiserver` builds it,\n\
         `cargo xtask test --cluster real` runs them on it). The embedded server is as\n\
         Kubernetes 1.34; what the older one has not is marked, not dropped.\n\n\
         Logs, exec and binding (26 to 28) and what controllers and the node do (33 to 39) are\n\
         tested beside the crates that do it.\n\n\
         This file is written by `cargo xtask conformance`, from a run of both.\n\n\
         | Rule | What it is about | Embedded | Real |\n\
         |---|---|---|---|\n"
    );
    for (number, words) in RULES {
        let tests = || of_rule(embedded, *number);
        let _ = writeln!(
            text,
            "| [{number}](#rule-{number}) | {words} | {} | {} |",
            embedded.summary_of(tests()),
            real.summary_of(tests()),
        );
    }
    let _ = writeln!(
        text,
        "| all | | {} | {} |",
        embedded.summary(),
        real.summary()
    );
    for (number, words) in RULES {
        let _ = writeln!(text, "\n## Rule {number}\n\n{}:\n", capital(words));
        for test in of_rule(embedded, *number) {
            let _ = writeln!(text, "- `{test}`{}", remarks(test, embedded, real));
        }
    }
    text
}

fn of_rule(results: &Results, number: u32) -> impl Iterator<Item = &str> {
    let prefix = format!("rule_{number:02}_");
    let tests = results.ends.keys().map(String::as_str);
    tests.filter(move |test| test.starts_with(&prefix))
}

/// What is to be said of a test besides that it passes on both.
fn remarks(test: &str, embedded: &Results, real: &Results) -> String {
    let mut remarks = Vec::new();
    for (server, results) in [("the embedded server", embedded), ("the real one", real)] {
        match results.ends.get(test) {
            Some(End::Passed) => {}
            Some(End::Failed) => remarks.push(format!("**fails on {server}**")),
            Some(End::Ignored) | None => remarks.push(format!("not run on {server}")),
        }
    }
    for note in real.notes.get(test).into_iter().flatten() {
        remarks.push(match note {
            Note::Lacks(text) => format!("not on the real one, {text}"),
            Note::Part(text) => format!("the real one differs: {text}"),
        });
    }
    if remarks.is_empty() {
        return String::new();
    }
    format!(": {}", remarks.join("; "))
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_came_of_both() {
        let (mut embedded, mut real) = (Results::default(), Results::default());
        for results in [&mut embedded, &mut real] {
            results.read_line("test rule_07::rule_07_a ... ok");
            results.read_line("test rule_07::rule_07_b ... ok");
        }
        real.read_note("rule_07::rule_07_a\tlacks\tof 1.27");
        let text = render("Kubernetes v1", &embedded, &real);
        assert!(text.contains("| 2 pass | 1 pass, 1 not in it |"), "{text}");
        assert!(
            text.contains("- `rule_07_a`: not on the real one, of 1.27\n"),
            "{text}"
        );
        assert!(text.contains("- `rule_07_b`\n"), "{text}");
    }
}
