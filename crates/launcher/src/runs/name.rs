//! Finds a run by name, prefix, or `last`. Pure.

use crate::suggest;

use super::{RunSummary, RunsError};

/// The word for the newest run.
pub const LAST: &str = "last";

/// The maximum number of runs in an error.
const NAMED: usize = 10;

/// Finds a run or schedule in a list that is sorted newest first: the one with this name, the
/// newest run for [`LAST`], or the only one with this prefix. A schedule and its runs count
/// as one match: the schedule.
///
/// # Errors
/// [`RunsError::NoSuchRun`] and [`RunsError::Ambiguous`].
pub fn pick<'a>(
    runs: &'a [RunSummary],
    namespace: &str,
    word: &str,
) -> Result<&'a RunSummary, RunsError> {
    let exact = runs.iter().find(|run| run.run.name.as_str() == word);
    if let Some(run) = exact {
        return Ok(run);
    }
    if word == LAST {
        let newest = runs.iter().find(|run| run.schedule.is_none());
        return newest.ok_or_else(|| RunsError::NoRuns {
            namespace: namespace.to_owned(),
        });
    }
    let mut found: Vec<&RunSummary> = match word {
        // Every name has the empty prefix.
        "" => Vec::new(),
        word => runs
            .iter()
            .filter(|run| run.run.name.as_str().starts_with(word))
            .collect(),
    };
    let schedules: Vec<&str> = found
        .iter()
        .filter(|run| run.schedule.is_some())
        .map(|run| run.run.name.as_str())
        .collect();
    found.retain(|run| {
        let made_by = run.run.schedule.as_ref();
        made_by.is_none_or(|schedule| !schedules.contains(&schedule.as_str()))
    });
    match &found[..] {
        [] => Err(RunsError::NoSuchRun {
            name: word.to_owned(),
            namespace: namespace.to_owned(),
            nearest: nearest(runs, word).map(str::to_owned),
        }),
        [one] => Ok(*one),
        several => Err(RunsError::Ambiguous {
            name: word.to_owned(),
            count: several.len(),
            candidates: several
                .iter()
                .take(NAMED)
                .map(|run| run.run.name.to_string())
                .collect(),
        }),
    }
}

/// The closest name to a word. Ignores the random suffix of names if the word has none.
fn nearest<'a>(runs: &'a [RunSummary], word: &str) -> Option<&'a str> {
    let names = || runs.iter().map(|run| run.run.name.as_str());
    let stem = |name: &'a str| name.rsplit_once('-').map_or(name, |(stem, _)| stem);
    suggest::nearest(word, names()).or_else(|| {
        let stem_of_word = suggest::nearest(word, names().map(stem))?;
        names().find(|name| stem(name) == stem_of_word)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::runs::{Run, RunState, ScheduleSummary};
    use longshore_diagnosis::names::RunName;

    fn run(name: &str, made_by: Option<&str>) -> RunSummary {
        RunSummary {
            run: Run {
                name: RunName::existing(name).unwrap(),
                namespace: "default".into(),
                roles: Vec::new(),
                schedule: made_by.map(|name| RunName::existing(name).unwrap()),
            },
            full_name: name.into(),
            state: RunState::Running,
            created: None,
            submitted: None,
            finished: None,
            command: Vec::new(),
            bundle: None,
            labels: Default::default(),
            tags: Default::default(),
            note: None,
            exit_code: None,
            outcome: None,
            succeeded: (0, 1),
            restarts: 0,
            webhook_problem: None,
            sweep: None,
            schedule: None,
        }
    }

    fn schedule(name: &str) -> RunSummary {
        RunSummary {
            state: RunState::Scheduled,
            schedule: Some(ScheduleSummary {
                cron: "0 3 * * *".into(),
                time_zone: None,
                last: None,
                next: None,
                active: 0,
            }),
            ..run(name, None)
        }
    }

    fn picked(runs: &[RunSummary], word: &str) -> String {
        match pick(runs, "default", word) {
            Ok(run) => run.run.name.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn names_prefixes_and_last() {
        let runs = [
            schedule("nightly-c2c2c"),
            run("digits-x7k2p", None),
            run("digits-b2k9w", None),
            run("sweep-1-x7k2p", None),
        ];
        for (word, name) in [
            ("digits-x7k2p", "digits-x7k2p"),
            ("digits-x", "digits-x7k2p"),
            ("s", "sweep-1-x7k2p"),
            ("nightly", "nightly-c2c2c"),
            // A schedule is no run.
            ("last", "digits-x7k2p"),
        ] {
            assert_eq!(picked(&runs, word), name, "{word}");
        }
        // A run that is called so comes first.
        let called = [run("digits-x7k2p", None), run("last", None)];
        assert_eq!(picked(&called, "last"), "last");
    }

    #[test]
    fn an_ambiguous_prefix_lists_the_candidates() {
        let runs = [run("digits-x7k2p", None), run("digits-b2k9w", None)];
        insta::assert_snapshot!(
            picked(&runs, "digits"),
            @r#""digits" is ambiguous, 2 runs match: digits-x7k2p, digits-b2k9w"#
        );
        let many: Vec<RunSummary> = (10..30).map(|n| run(&format!("a-{n}"), None)).collect();
        let error = picked(&many, "a");
        assert!(error.ends_with("a-19, and 10 more"), "{error}");
        assert!(error.contains("20 runs match"), "{error}");
    }

    #[test]
    fn a_schedule_and_its_runs_are_one_match() {
        let runs = [
            run("nightly-c2c2c-29000002", Some("nightly-c2c2c")),
            run("nightly-c2c2c-29000001", Some("nightly-c2c2c")),
            schedule("nightly-c2c2c"),
        ];
        assert_eq!(picked(&runs, "nightly"), "nightly-c2c2c");
        assert_eq!(picked(&runs, "last"), "nightly-c2c2c-29000002");
        assert_eq!(
            picked(&runs, "nightly-c2c2c-29000001"),
            "nightly-c2c2c-29000001"
        );
    }

    #[test]
    fn an_unknown_name_gets_a_suggestion() {
        let runs = [run("digits-x7k2p", None), run("sweep-b2k9w", None)];
        for (word, near) in [
            ("digist-x7k2p", "digits-x7k2p"),
            ("digist", "digits-x7k2p"),
            ("swep", "sweep-b2k9w"),
        ] {
            let error = picked(&runs, word);
            assert!(
                error.contains(&format!("did you mean {near:?}?")),
                "{error}"
            );
        }
        for word in ["", "unrelated"] {
            let error = picked(&runs, word);
            assert!(error.contains("no run"), "{error}");
            assert!(!error.contains("did you mean"), "{error}");
        }
        let error = picked(&[], "last");
        assert_eq!(error, r#"there are no runs in namespace "default""#);
    }
}
