//! Limits the number of crates that a user's program compiles.

use std::collections::BTreeSet;

use crate::run::{Outcome, cargo, output};

/// The maximum number of crates that a program with `longshore` and no features compiles.
const MAX_CRATES: usize = 150;

/// Adds a problem if the client needs too many crates.
pub(super) fn check(problems: &mut Vec<String>) -> Outcome {
    let tree = output(cargo().args([
        "tree",
        "--package",
        "longshore",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
    ]))?;
    let crates: BTreeSet<&str> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .collect();
    if crates.len() > MAX_CRATES {
        problems.push(format!(
            "a program that depends on longshore without features compiles {} crates, more than \
             {MAX_CRATES}: make the new dependency a feature (`cargo tree --package longshore \
             --edges normal,build` shows what needs it)",
            crates.len()
        ));
    }
    Ok(())
}
