//! Checks that the files that the developers' documents name exist.

use std::{fs, path::Path};

use crate::run::Outcome;

/// The documents. Paths in them start at the repository's root, in `crates`, or in one of the
/// folders there.
const DOCUMENTS: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md"];
/// What a path in a document starts with.
const ROOTS: &[&str] = &["crates/", "docs/", "docker/", "fuzz/", "xtask/"];

/// Reports each path that does not exist.
pub(super) fn check(root: &Path, problems: &mut Vec<String>) -> Outcome {
    let crates = root.join("crates");
    let mut starts = vec![root.to_owned(), crates.clone()];
    for house in fs::read_dir(&crates).map_err(|error| format!("{}: {error}", crates.display()))? {
        starts.push(house.map_err(|error| error.to_string())?.path());
    }
    for document in DOCUMENTS {
        let text = fs::read_to_string(root.join(document))
            .map_err(|error| format!("{document}: {error}"))?;
        for path in paths(&text) {
            let exists = starts.iter().any(|start| start.join(path).exists());
            if !exists {
                problems.push(format!(
                    "{document} names {path}, which does not exist: correct the path"
                ));
            }
        }
    }
    Ok(())
}

/// The paths between backticks, without those that contain a placeholder.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.filter(|word| {
        let is_path = ROOTS.iter().any(|start| word.starts_with(start)) || word.contains("/src/");
        is_path && !word.contains([' ', '*']) && !word.contains("TARGET")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_between_backticks() {
        let text = "Open `crates/a/src/b.rs`, then `engine/src/c.rs`.\n\
                    `cargo xtask tidy`, crates/d, `fuzz/corpus/TARGET`";
        let found: Vec<&str> = paths(text).collect();
        assert_eq!(found, ["crates/a/src/b.rs", "engine/src/c.rs"]);
    }
}
