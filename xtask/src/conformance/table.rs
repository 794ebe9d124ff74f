//! The table in the docs.

use std::fmt::Write as _;

use super::{
    results::{End, Note, Results},
    subjects::Subject,
};

/// The whole document.
pub(super) fn render(
    subject: &Subject,
    version: &str,
    embedded: &Results,
    real: &Results,
) -> String {
    let Subject { word, rows, .. } = subject;
    let mut text = subject.opening.replace("{version}", version);
    let _ = write!(
        text,
        "\nThis file is written by `cargo xtask conformance`, from a run of both.\n\n\
         | {} | What it is about | Embedded | Real |\n\
         |---|---|---|---|\n",
        capital(word),
    );
    for (number, words) in *rows {
        let tests = || subject.tests_of(embedded, *number);
        let _ = writeln!(
            text,
            "| [{number}](#{word}-{number}) | {words} | {} | {} |",
            embedded.summary_of(tests()),
            real.summary_of(tests()),
        );
    }
    let all = || {
        rows.iter()
            .flat_map(|(number, _)| subject.tests_of(embedded, *number))
    };
    let _ = writeln!(
        text,
        "| all | | {} | {} |",
        embedded.summary_of(all()),
        real.summary_of(all())
    );
    for (number, words) in *rows {
        let tests: Vec<&str> = subject.tests_of(embedded, *number).collect();
        if tests.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "\n## {} {number}\n\n{}:\n",
            capital(word),
            capital(words)
        );
        for test in tests {
            let _ = writeln!(text, "- `{test}`{}", remarks(test, embedded, real));
        }
    }
    text
}

impl Subject {
    fn tests_of<'a>(
        &self,
        results: &'a Results,
        number: u32,
    ) -> impl Iterator<Item = &'a str> + use<'a> {
        let prefix = format!("{}_{number:02}_", self.word);
        let tests = results.ends.keys().map(String::as_str);
        tests.filter(move |test| test.starts_with(&prefix))
    }
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
    use super::{super::subjects::SUBJECTS, *};

    #[test]
    fn tells_what_came_of_both() {
        let (mut embedded, mut real) = (Results::default(), Results::default());
        for results in [&mut embedded, &mut real] {
            results.read_line("test rule_07::rule_07_a ... ok");
            results.read_line("test rule_07::rule_07_b ... ok");
        }
        real.read_note("rule_07::rule_07_a\tlacks\tof 1.27");
        let text = render(&SUBJECTS[0], "Kubernetes v1", &embedded, &real);
        assert!(text.contains("| 2 pass | 1 pass, 1 not in it |"), "{text}");
        assert!(
            text.contains("- `rule_07_a`: not on the real one, of 1.27\n"),
            "{text}"
        );
        assert!(text.contains("- `rule_07_b`\n"), "{text}");
    }
}
