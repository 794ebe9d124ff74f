//! The table in the docs.

use std::fmt::Write as _;

use super::{
    results::{End, Note, Results},
    subjects::Subject,
};

/// The whole document.
pub(super) fn render(subject: &Subject, embedded: &Results, real: &[(String, Results)]) -> String {
    let Subject { word, rows, .. } = subject;
    let versions: Vec<&str> = real.iter().map(|(version, _)| &**version).collect();
    let mut text = subject
        .opening
        .replace("{versions}", &versions.join(" and "));
    let _ = write!(
        text,
        "\n`cargo xtask conformance` runs all tests and generates this file.\n\n\
         | {} | Topic | Embedded | {} |\n\
         |---|---|---|{}\n",
        capital(word),
        versions.join(" | "),
        "---|".repeat(real.len()),
    );
    let summaries = |tests: &[&str]| {
        let real = real.iter().map(|(_, results)| results);
        let all = std::iter::once(embedded).chain(real);
        let all = all.map(|results| results.summary_of(tests.iter().copied()));
        all.collect::<Vec<_>>().join(" | ")
    };
    for (number, words) in *rows {
        let tests: Vec<&str> = subject.tests_of(embedded, *number).collect();
        let _ = writeln!(
            text,
            "| [{number}](#{word}-{number}) | {words} | {} |",
            summaries(&tests)
        );
    }
    let numbers = rows.iter();
    let all = numbers.flat_map(|(number, _)| subject.tests_of(embedded, *number));
    let all: Vec<&str> = all.collect();
    let _ = writeln!(text, "| all | | {} |", summaries(&all));
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

/// What is to be said of a test besides that it passes on all.
fn remarks(test: &str, embedded: &Results, real: &[(String, Results)]) -> String {
    let mut remarks = Vec::new();
    let real = real.iter().map(|(version, results)| (&**version, results));
    for (server, results) in std::iter::once(("the embedded server", embedded)).chain(real) {
        match results.ends.get(test) {
            Some(End::Passed) => {}
            Some(End::Failed) => remarks.push(format!("**fails on {server}**")),
            Some(End::Ignored) | None => remarks.push(format!("not run on {server}")),
        }
        for note in results.notes.get(test).into_iter().flatten() {
            remarks.push(match note {
                Note::Lacks(text) => format!("not supported on {server}: {text}"),
                Note::Part(text) => format!("{server} differs: {text}"),
            });
        }
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
    fn tells_what_came_of_all() {
        let [mut embedded, mut today, mut old] = [(); 3].map(|()| Results::default());
        for results in [&mut embedded, &mut today, &mut old] {
            results.read_line("test rule_07::rule_07_a ... ok");
            results.read_line("test rule_07::rule_07_b ... ok");
        }
        old.read_note("rule_07::rule_07_a\tlacks\tof 1.27");
        let real = [("New".to_owned(), today), ("Old".to_owned(), old)];
        let text = render(&SUBJECTS[0], &embedded, &real);
        let row = "| 2 pass | 2 pass | 1 pass, 1 not supported |";
        assert!(text.contains(row), "{text}");
        assert!(
            text.contains("- `rule_07_a`: not supported on Old: of 1.27\n"),
            "{text}"
        );
        assert!(text.contains("- `rule_07_b`\n"), "{text}");
    }
}
