//! Checks that every Rust file states its purpose, and that all modules have the same layout.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use crate::run::{Outcome, output};

/// Checks all Rust files of the repository. Returns a summary of their sizes.
pub(super) fn check(root: &Path, problems: &mut Vec<String>) -> Outcome<String> {
    let files = rust_files(root)?;
    let mut sizes = Vec::new();
    let mut existing = Vec::new();
    for file in files.lines() {
        let Ok(contents) = fs::read_to_string(root.join(file)) else {
            continue;
        };
        let generated = contents.starts_with("#![no_main]");
        if !contents.starts_with("//!") && !generated {
            problems.push(format!(
                "{file} does not state its purpose: start it with a `//!` line"
            ));
        }
        sizes.push((contents.lines().count(), file.to_owned()));
        existing.push(file);
    }
    problems.extend(misplaced(&existing));
    sizes.sort();
    let median = sizes.get(sizes.len() / 2).map_or(0, |(lines, _)| *lines);
    let (longest, longest_file) = sizes.last().cloned().unwrap_or_default();
    Ok(format!(
        "{} files, median {median} lines, longest {longest} ({longest_file})",
        sizes.len()
    ))
}

/// The paths of all Rust files of the repository, one per line.
pub(super) fn rust_files(root: &Path) -> Outcome<String> {
    output(Command::new("git").current_dir(root).args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "*.rs",
    ]))
}

/// Returns the problems of files in wrong places: a module with submodules must be a folder with
/// `mod.rs`, and the tests of a module must be its submodule `tests`.
fn misplaced(files: &[&str]) -> Vec<String> {
    let folders: BTreeSet<&str> = files
        .iter()
        .filter_map(|file| file.rsplit_once('/'))
        .map(|(folder, _)| folder)
        .collect();
    let mut problems = Vec::new();
    for file in files {
        let Some(module) = file.strip_suffix(".rs") else {
            continue;
        };
        if folders.contains(module) {
            problems.push(format!(
                "{file} is beside the folder of its modules: move it to {module}/mod.rs"
            ));
        }
        if let Some(tested) = module.strip_suffix("_tests") {
            problems.push(format!(
                "{file} contains the tests of a module: move it to {tested}/tests.rs"
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::misplaced;

    #[test]
    fn modules_with_submodules_are_folders() {
        assert!(misplaced(&["src/a/mod.rs", "src/a/tests.rs", "src/ab.rs"]).is_empty());
        let problems = misplaced(&["src/a.rs", "src/a/b.rs", "src/c.rs", "src/c_tests.rs"]);
        assert_eq!(
            problems,
            [
                "src/a.rs is beside the folder of its modules: move it to src/a/mod.rs",
                "src/c_tests.rs contains the tests of a module: move it to src/c/tests.rs"
            ]
        );
    }
}
