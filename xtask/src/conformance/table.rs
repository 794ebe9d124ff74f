//! Generates the table in the docs.

use std::fmt::Write as _;

use super::{
    results::{Note, Results, Status},
    suites::Suite,
};

/// The text of the document.
pub(super) fn render(suite: &Suite, embedded: &Results, real: &[(String, Results)]) -> String {
    let Suite { prefix, rows, .. } = suite;
    let versions: Vec<&str> = real.iter().map(|(version, _)| &**version).collect();
    let mut text = suite
        .introduction
        .replace("{versions}", &versions.join(" and "));
    let _ = write!(
        text,
        "\n`cargo xtask conformance` runs all tests and generates this file.\n\n\
         | {} | Topic | Embedded | {} |\n\
         |---|---|---|{}\n",
        capitalized(prefix),
        versions.join(" | "),
        "---|".repeat(real.len()),
    );
    let summaries = |tests: &[&str]| {
        let real = real.iter().map(|(_, results)| results);
        let all = std::iter::once(embedded).chain(real);
        let all = all.map(|results| results.summary_of(tests.iter().copied()));
        all.collect::<Vec<_>>().join(" | ")
    };
    for (number, topic) in *rows {
        let tests: Vec<&str> = suite.tests_of(embedded, *number).collect();
        let _ = writeln!(
            text,
            "| [{number}](#{prefix}-{number}) | {topic} | {} |",
            summaries(&tests)
        );
    }
    let numbers = rows.iter();
    let all = numbers.flat_map(|(number, _)| suite.tests_of(embedded, *number));
    let all: Vec<&str> = all.collect();
    let _ = writeln!(text, "| all | | {} |", summaries(&all));
    for (number, topic) in *rows {
        let tests: Vec<&str> = suite.tests_of(embedded, *number).collect();
        if tests.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "\n## {} {number}\n\n{}:\n",
            capitalized(prefix),
            capitalized(topic)
        );
        for test in tests {
            let _ = writeln!(text, "- `{test}`{}", notes(test, embedded, real));
        }
    }
    text
}

impl Suite {
    fn tests_of<'a>(
        &self,
        results: &'a Results,
        number: u32,
    ) -> impl Iterator<Item = &'a str> + use<'a> {
        let prefix = format!("{}_{number:02}_", self.prefix);
        let tests = results.statuses.keys().map(String::as_str);
        tests.filter(move |test| test.starts_with(&prefix))
    }
}

/// The notes on a test: servers on which it does not pass, and differences.
fn notes(test: &str, embedded: &Results, real: &[(String, Results)]) -> String {
    let mut notes = Vec::new();
    let real = real.iter().map(|(version, results)| (&**version, results));
    for (server, results) in std::iter::once(("the embedded server", embedded)).chain(real) {
        match results.statuses.get(test) {
            Some(Status::Passed) => {}
            Some(Status::Failed) => notes.push(format!("**fails on {server}**")),
            Some(Status::Ignored) | None => notes.push(format!("not run on {server}")),
        }
        for note in results.notes.get(test).into_iter().flatten() {
            notes.push(match note {
                Note::Unsupported(text) => format!("not supported on {server}: {text}"),
                Note::Differs(text) => format!("{server} differs: {text}"),
            });
        }
    }
    if notes.is_empty() {
        return String::new();
    }
    format!(": {}", notes.join("; "))
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::suites::SUITES, *};

    #[test]
    fn results_of_all_servers_are_listed() {
        let [mut embedded, mut current, mut old] = [(); 3].map(|()| Results::default());
        for results in [&mut embedded, &mut current, &mut old] {
            results.read_line("test rule_07::rule_07_a ... ok");
            results.read_line("test rule_07::rule_07_b ... ok");
        }
        old.read_note("rule_07::rule_07_a\tlacks\tof 1.27");
        let real = [("New".to_owned(), current), ("Old".to_owned(), old)];
        let text = render(&SUITES[0], &embedded, &real);
        let row = "| 2 pass | 2 pass | 1 pass, 1 not supported |";
        assert!(text.contains(row), "{text}");
        assert!(
            text.contains("- `rule_07_a`: not supported on Old: of 1.27\n"),
            "{text}"
        );
        assert!(text.contains("- `rule_07_b`\n"), "{text}");
    }
}
