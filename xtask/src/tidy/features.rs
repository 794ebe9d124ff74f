//! Checks that the program and the tests share one build. Cargo builds a crate again for
//! each set of features, with all crates that depend on it.

use std::collections::BTreeSet;

use crate::run::{Outcome, cargo, output};

/// Adds a problem for each crate that the program needs with other features than the tests.
pub(super) fn check(problems: &mut Vec<String>) -> Outcome {
    let program = builds(&["--package", "longshore-cli", "--edges", "normal,build"])?;
    let tests = builds(&["--workspace", "--edges", "normal,build,dev"])?;
    problems.extend(differences(&program, &tests));
    Ok(())
}

/// The crates of a dependency tree, each with its version and features.
fn builds(selection: &[&str]) -> Outcome<BTreeSet<(String, String)>> {
    let format = ["tree", "--prefix", "none", "--format", "{p}|{f}"];
    let tree = output(cargo().args(format).args(selection))?;
    let rows = tree.lines().filter_map(|line| line.split_once('|'));
    Ok(rows
        .map(|(name, features)| {
            // "(*)" means that the tree has shown this crate before.
            let features = features.trim_end_matches("(*)").trim_end();
            (name.to_owned(), features.to_owned())
        })
        .collect())
}

fn differences(
    program: &BTreeSet<(String, String)>,
    tests: &BTreeSet<(String, String)>,
) -> Vec<String> {
    let only_program = program.difference(tests);
    only_program
        .map(|(name, features)| {
            let others: Vec<&str> = tests
                .iter()
                .filter(|(other, _)| other == name)
                .map(|(_, features)| features.as_str())
                .collect();
            format!(
                "the program needs {name} with the features {features:?}, the tests with {others:?}, \
                 so it is built twice: enable the missing features in crates/features/Cargo.toml"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_with_different_features_are_reported() {
        let set = |rows: &[(&str, &str)]| {
            rows.iter()
                .map(|(name, features)| ((*name).to_owned(), (*features).to_owned()))
                .collect()
        };
        let program = set(&[("a v1", "std"), ("b v1", "")]);
        let tests = set(&[("a v1", "std"), ("b v1", "x"), ("c v1", "")]);
        let found = differences(&program, &tests);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("b v1"), "{found:?}");
        assert_eq!(differences(&program, &program), [""; 0]);
    }
}
