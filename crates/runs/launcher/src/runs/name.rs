//! Finds a run by name, prefix, or `last`. Pure.

use globset::GlobBuilder;

use super::{RunSummary, RunsError};
use crate::{
    owner::{Owner, Ownership},
    suggest,
};

/// The word for the newest run.
pub const LAST: &str = "last";

/// The maximum number of runs in an error.
const NAMED: usize = 10;

/// Finds a run or schedule in a list that is sorted newest first: the run with this name, the
/// newest run for [`LAST`], or the only run with this prefix. A schedule and its runs count as one
/// match: the schedule.
///
/// With a user, [`LAST`] and prefixes select the runs of this user. If this user has no matching
/// runs, they select runs without a recorded owner, but never runs of other users.
///
/// # Errors
/// [`RunsError::NoSuchRun`], [`RunsError::Ambiguous`], [`RunsError::NoRuns`] and
/// [`RunsError::OfOthers`].
pub fn pick<'a>(
    runs: &'a [RunSummary],
    namespace: &str,
    word: &str,
    me: Option<&Owner>,
) -> Result<&'a RunSummary, RunsError> {
    let exact = runs.iter().find(|run| run.run.name.as_str() == word);
    if let Some(run) = exact {
        return Ok(run);
    }
    let matching: Vec<&RunSummary> = match word {
        // A schedule is not a run.
        LAST => runs.iter().filter(|run| run.schedule.is_none()).collect(),
        // All names begin with the empty prefix.
        "" => Vec::new(),
        word => runs
            .iter()
            .filter(|run| run.run.name.as_str().starts_with(word))
            .collect(),
    };
    let found = of_user(matching, namespace, word, me)?;
    if word == LAST {
        let newest = found.into_iter().next();
        return newest.ok_or_else(|| RunsError::NoRuns {
            namespace: namespace.to_owned(),
        });
    }
    only(runs, found, namespace, word)
}

/// The runs and schedules whose names match a pattern with `*` and `?`. With a user, selects among
/// the runs of this user, with the same rules as [`pick`]. The second list contains the matching
/// runs that are left out.
///
/// # Errors
/// [`RunsError::Pattern`], [`RunsError::NoMatch`] and [`RunsError::OfOthers`].
pub fn matching<'a>(
    runs: &'a [RunSummary],
    namespace: &str,
    pattern: &str,
    me: Option<&Owner>,
) -> Result<(Vec<&'a RunSummary>, Vec<&'a RunSummary>), RunsError> {
    let glob = GlobBuilder::new(pattern).build();
    let glob = glob.map_err(|error| RunsError::Pattern {
        pattern: pattern.to_owned(),
        problem: error.kind().to_string(),
    })?;
    let glob = glob.compile_matcher();
    let is_named = |run: &&RunSummary| glob.is_match(run.run.name.as_str());
    let all: Vec<&RunSummary> = runs.iter().filter(is_named).collect();
    if all.is_empty() {
        return Err(RunsError::NoMatch {
            pattern: pattern.to_owned(),
            namespace: namespace.to_owned(),
        });
    }
    let found = of_user(all.clone(), namespace, pattern, me)?;
    let is_left = |run: &&RunSummary| !found.iter().any(|chosen| std::ptr::eq(*chosen, *run));
    let left = all.into_iter().filter(is_left).collect();
    Ok((found, left))
}

/// Returns true if a word is a pattern. Run names do not contain these characters.
#[must_use]
pub fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '[', '{'])
}

/// The runs of a user, or if there are none, the runs without a recorded owner.
fn of_user<'a>(
    matching: Vec<&'a RunSummary>,
    namespace: &str,
    word: &str,
    me: Option<&Owner>,
) -> Result<Vec<&'a RunSummary>, RunsError> {
    let Some(me) = me else {
        return Ok(matching);
    };
    let of = |wanted: Ownership| -> Vec<&'a RunSummary> {
        let runs = matching.iter().copied();
        runs.filter(|run| me.ownership(run.owner.as_ref()) == wanted)
            .collect()
    };
    let unknown = || Some(of(Ownership::Unknown)).filter(|runs| !runs.is_empty());
    let own = Some(of(Ownership::Own)).filter(|runs| !runs.is_empty());
    let Some(found) = own.or_else(unknown) else {
        if matching.is_empty() {
            return Ok(matching);
        }
        let named = matching.iter().take(NAMED).map(|run| {
            let owner = run.owner.as_ref().map(ToString::to_string);
            format!("{} ({})", run.run.name, owner.unwrap_or_default())
        });
        return Err(RunsError::OfOthers {
            wanted: match word {
                LAST => "no run".to_owned(),
                word => format!("no run that matches {word:?}"),
            },
            namespace: namespace.to_owned(),
            count: matching.len(),
            candidates: named.collect(),
        });
    };
    Ok(found)
}

/// The only run with a prefix.
fn only<'a>(
    runs: &'a [RunSummary],
    mut found: Vec<&'a RunSummary>,
    namespace: &str,
    word: &str,
) -> Result<&'a RunSummary, RunsError> {
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
            owner: None,
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
        match pick(runs, "default", word, None) {
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
            // A schedule is not a run.
            ("last", "digits-x7k2p"),
        ] {
            assert_eq!(picked(&runs, word), name, "{word}");
        }
        // A run with this name takes precedence.
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

    fn owned(name: &str, owner: &str) -> RunSummary {
        RunSummary {
            owner: (!owner.is_empty()).then(|| Owner::of_cluster(owner)),
            ..run(name, None)
        }
    }

    #[test]
    fn prefixes_and_last_select_the_runs_of_the_user() {
        let runs = [
            owned("digits-b0b", "bob"),
            owned("digits-a11", "ann"),
            owned("old-1", ""),
            owned("shared-b0b", "bob"),
            owned("shared-old", ""),
        ];
        let picked = |word: &str, me: &str| {
            let me = Owner::of_cluster(me);
            match pick(&runs, "team", word, Some(&me)) {
                Ok(run) => run.run.name.to_string(),
                Err(error) => error.to_string(),
            }
        };
        for (word, me, name) in [
            ("last", "ann", "digits-a11"),
            ("last", "bob", "digits-b0b"),
            ("digits", "ann", "digits-a11"),
            ("digits", "bob", "digits-b0b"),
            // The full name selects a run of any user.
            ("digits-b0b", "ann", "digits-b0b"),
            // Runs without an owner come after the user's own runs.
            ("last", "eve", "old-1"),
            ("old", "ann", "old-1"),
            ("shared", "ann", "shared-old"),
            ("shared", "bob", "shared-b0b"),
        ] {
            assert_eq!(picked(word, me), name, "{word} {me}");
        }
        insta::assert_snapshot!(picked("digits", "eve"), @r#"no run that matches "digits" in namespace "team" is yours; runs of other users: digits-b0b (bob), digits-a11 (ann)"#);
        let only = [owned("digits-b0b", "bob")];
        let ann = Owner::of_cluster("ann");
        let error = pick(&only, "team", "last", Some(&ann)).unwrap_err();
        insta::assert_snapshot!(error, @r#"no run in namespace "team" is yours; runs of other users: digits-b0b (bob)"#);
        assert!(pick(&only, "team", "last", None).is_ok());

        let names = |runs: Vec<&RunSummary>| -> Vec<String> {
            runs.iter().map(|run| run.run.name.to_string()).collect()
        };
        let (found, left) = matching(&runs, "team", "*b0b", None).unwrap();
        assert_eq!((names(found).len(), left.len()), (2, 0));
        let (found, left) = matching(&runs, "team", "*", Some(&ann)).unwrap();
        assert_eq!(
            (names(found), left.len()),
            (vec!["digits-a11".to_owned()], 4)
        );
        assert!(matching(&runs, "team", "shared-b*", Some(&ann)).is_err());
        assert!(matching(&runs, "team", "none*", None).is_err());
        assert!(matching(&runs, "team", "[a", None).is_err());
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
