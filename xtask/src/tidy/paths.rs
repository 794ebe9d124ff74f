//! Checks that the files that the developers' documents name exist.

use std::{fs, path::Path};

use crate::run::Outcome;

/// The documents at the repository's root. Paths in them start there.
const DOCUMENTS: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md"];
/// The document of each house, a folder in `crates`; a crate may have one, too. Paths in them start
/// at the repository's root or in the house.
const PAGE: &str = "ARCHITECTURE.md";
/// The first components of paths in documents.
const ROOTS: &[&str] = &["crates/", "docs/", "docker/", "fuzz/", "xtask/"];

/// Reports each path that does not exist.
pub(super) fn check(root: &Path, problems: &mut Vec<String>) -> Outcome {
    for document in DOCUMENTS {
        check_document(&root.join(document), &[root], problems)?;
    }
    for house in super::files(&root.join("crates")).filter(|path| path.is_dir()) {
        check_document(&house.join(PAGE), &[root, &house], problems)?;
        let pages = super::files(&house).map(|folder| folder.join(PAGE));
        for page in pages.filter(|page| page.exists()) {
            check_document(&page, &[root, &house], problems)?;
        }
    }
    Ok(())
}

/// Checks the paths in a document, which start in one of `folders`.
fn check_document(file: &Path, folders: &[&Path], problems: &mut Vec<String>) -> Outcome {
    let document = file.display();
    let text = fs::read_to_string(file).map_err(|error| format!("{document}: {error}"))?;
    for path in paths(&text) {
        if !folders.iter().any(|folder| folder.join(path).exists()) {
            problems.push(format!(
                "{document} names {path}, which does not exist: correct the path"
            ));
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
