//! Generates docs/operators.md.

use std::fmt::Write as _;

use super::{Results, Row};

/// What is known about the failures of suites.
const NOTES: [(&str, &str); 1] = [(
    "sigs.k8s.io/lws/test/integration/controllers",
    "The tests of lws change objects and expect, without waiting, that a controller has acted by\n\
     their next request, so they depend on the speed of the API server. With\n\
     `longshore envtest --latency 3`, 46 of the 48 pass. The two others need a controller that\n\
     sees a deleted pod without a grace period: kube-apiserver marks and removes it in two writes,\n\
     Longshore in one.",
)];

/// A row of the table.
pub(super) fn line(row: &Row) -> String {
    let cells = |results: &Results| {
        let Results {
            passed,
            failed,
            seconds,
        } = results;
        format!("{passed} | {} | {seconds:.1} s", failed.len())
    };
    let Row {
        suite,
        longshore,
        kubernetes,
    } = row;
    format!("| {suite} | {} | {} |", cells(longshore), cells(kubernetes))
}

/// The page. `missing` are the suites without results.
pub(super) fn render(modules: &[(&str, &str)], rows: &[Row], missing: &[String]) -> String {
    let mut text = String::from(
        "# Suites of other projects on envtest\n\n\
         Test suites that use envtest, run unchanged with the programs of `longshore envtest` and\n\
         with the kube-apiserver and etcd of Kubernetes, in turn on one machine. The time is that\n\
         of the suite, including the start of the programs. `cargo xtask operators` generates\n\
         this file.\n\n",
    );
    for (path, version) in modules {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "- {path} {version}");
    }
    text.push_str(
        "\n| suite | Longshore: passed | failed | time | Kubernetes: passed | failed | time |\n\
         |---|---|---|---|---|---|---|\n",
    );
    let mut total = Row {
        suite: "all".to_owned(),
        longshore: Results::default(),
        kubernetes: Results::default(),
    };
    for row in rows {
        let _ = writeln!(text, "{}", line(row));
        for (sum, part) in [
            (&mut total.longshore, &row.longshore),
            (&mut total.kubernetes, &row.kubernetes),
        ] {
            sum.passed += part.passed;
            sum.failed.extend(part.failed.iter().cloned());
            sum.seconds += part.seconds;
        }
    }
    let _ = writeln!(text, "{}", line(&total));
    if !missing.is_empty() {
        text.push_str("\nThese suites have not run with these versions:\n\n");
    }
    for suite in missing {
        let _ = writeln!(text, "- {suite}");
    }
    if rows.iter().any(|row| !row.longshore.failed.is_empty()) {
        text.push_str("\n## Failed tests with Longshore\n\n");
    }
    for row in rows {
        for (name, message) in &row.longshore.failed {
            let _ = writeln!(text, "- {}: {name}: {message}", row.suite);
        }
        for (_, note) in NOTES.iter().filter(|(suite, _)| *suite == row.suite) {
            let _ = writeln!(text, "\n{note}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_summed_and_failures_listed() {
        let results = |passed, seconds| Results {
            passed,
            failed: vec![("works".to_owned(), "no".to_owned())],
            seconds,
        };
        let rows = ["a", "b"].map(|suite| Row {
            suite: suite.to_owned(),
            longshore: results(2, 0.25),
            kubernetes: results(3, 4.0),
        });
        let text = render(&[("m", "v1")], &rows, &["c".to_owned()]);
        assert!(
            text.contains("| a | 2 | 1 | 0.2 s | 3 | 1 | 4.0 s |"),
            "{text}"
        );
        assert!(
            text.contains("| all | 4 | 2 | 0.5 s | 6 | 2 | 8.0 s |"),
            "{text}"
        );
        assert!(text.contains("versions:\n\n- c\n"), "{text}");
        assert!(text.ends_with("- b: works: no\n"), "{text}");
    }
}
