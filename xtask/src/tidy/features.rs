//! Checks that the program, all tests and the tests of one crate share one build. Cargo
//! builds a crate again for each set of features, with all crates that depend on it.

use std::collections::BTreeSet;

use crate::run::{Outcome, cargo, output};

/// Adds a problem for each dependency that the program or the tests of one of these
/// packages need with other features than the tests of all packages.
pub(super) fn check(packages: &[&str], problems: &mut Vec<String>) -> Outcome {
    let tests = "normal,build,dev";
    let all = builds(&["--workspace", "--edges", tests])?;
    // As `cargo xtask test -p` builds it for the tests of other packages. Releases have fewer
    // features.
    let selection = [
        "--package",
        "longshore-cli",
        "--package",
        "longshore-features",
    ];
    let program = builds(&[&selection[..], &["--edges", "normal,build"]].concat())?;
    problems.extend(differences("the program", &program, &all));
    // Not a crate with tests of Longshore: `cargo xtask` alone builds it.
    for package in packages.iter().filter(|name| **name != "xtask") {
        let its = builds(&["--package", package, "--edges", tests])?;
        problems.extend(differences(&format!("tests of {package}"), &its, &all));
    }
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
    who: &str,
    part: &BTreeSet<(String, String)>,
    all: &BTreeSet<(String, String)>,
) -> Vec<String> {
    let only_part = part.difference(all);
    only_part
        .map(|(name, features)| {
            let others: Vec<&str> = all
                .iter()
                .filter(|(other, _)| other == name)
                .map(|(_, features)| features.as_str())
                .collect();
            format!(
                "{who}: {name} has the features {features:?}, in tests of the workspace {others:?}, \
                 so it is built twice: enable the missing features in crates/program/features/Cargo.toml"
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
        let found = differences("x", &program, &tests);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("b v1"), "{found:?}");
        assert_eq!(differences("x", &program, &program), [""; 0]);
    }
}
