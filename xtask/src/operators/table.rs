//! Generates docs/operators.md.

use std::fmt::Write as _;

use super::{Results, Row, kopf};

/// Explanations of failures of suites, and how the suites run.
const NOTES: [(&str, &str); 4] = [
    (
        "sigs.k8s.io/controller-runtime/pkg/cache",
        "The tests named `should allow for get informer to be cancelled` start an informer with a\n\
     cancelled context and expect an error, but `GetInformer` returns one only if the first list\n\
     has not ended: it asks whether the informer has synced before it looks at the context. Longshore\n\
     sometimes responds to the list sooner, mostly on a busy machine: one of these 9 tests failed in\n\
     3 of 45 runs, and none in 40 runs with `longshore envtest --latency 3`. With a pause of 100 ms in\n\
     `GetInformer`, all 9 fail with Kubernetes, too.",
    ),
    (
        "sigs.k8s.io/jobset/test/integration/controller",
        "The test `jobset with VolumeClaimPolicies should create two PVC with Delete and Retain\n\
     policies` lists Jobs right after it has created a second JobSet, completes those that it finds,\n\
     and expects that the second JobSet completes. The Job of the first JobSet satisfies its check\n\
     that a Job exists, so it depends on whether the controller has created the second Job by then:\n\
     alone, it passed in 5 of 8 runs with Kubernetes and in none of 10 with Longshore.",
    ),
    (
        "sigs.k8s.io/lws/test/integration/controllers",
        "The tests of lws change objects and expect, without waiting, that a controller has acted by\n\
     their next request, so they depend on the speed of the API server. With\n\
     `longshore envtest --latency 3`, 46 of the 48 pass. The two others need a controller that\n\
     sees a deleted pod without a grace period: kube-apiserver marks and removes it in two writes,\n\
     Longshore in one.",
    ),
    (
        kopf::SUITE,
        "kopf's tests run with the option `-W ignore:unclosed:ResourceWarning` of pytest. An operator of\n\
     kopf 1.45.2 that stops does not close the connections of its watches. Python's garbage collector\n\
     warns of them during a later test, and kopf's configuration of pytest makes warnings errors, so\n\
     without the option one to five tests fail with both servers, others in each run.",
    ),
];

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
    }
    let has_run = |suite: &str| rows.iter().any(|row| row.suite == suite);
    let notes: Vec<_> = NOTES.iter().filter(|(suite, _)| has_run(suite)).collect();
    if !notes.is_empty() {
        text.push_str("\n## Notes\n");
    }
    for (suite, note) in notes {
        let _ = writeln!(text, "\n### {suite}\n\n{note}");
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
        assert!(!text.contains("## Notes"), "{text}");
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
    #[test]
    fn suites_that_ran_have_their_notes() {
        let row = Row {
            suite: kopf::SUITE.to_owned(),
            longshore: Results::default(),
            kubernetes: Results::default(),
        };
        let text = render(&[], &[row], &[]);
        assert!(!text.contains("## Failed"), "{text}");
        let notes = "\n## Notes\n\n### kopf: tests/e2e, examples\n\nkopf's tests run with";
        assert!(text.contains(notes), "{text}");
        assert!(!text.contains("### sigs"), "{text}");
    }
}
