//! Longshore's own ignore rules: the defaults, settings, and `.longshoreignore` files.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::BundleError;

/// Patterns that are excluded unless git tracks the file or an ignore file contains
/// `!pattern`.
pub const DEFAULT_IGNORES: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".DS_Store",
    "__pycache__/",
    "*.pyc",
    ".venv/",
    "venv/",
    "node_modules/",
    ".zenml/",
    ".ipynb_checkpoints/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".tox/",
    ".nox/",
    ".pixi/",
    "__pypackages__/",
];

/// The ignore file of the project.
pub(super) const IGNORE_FILE: &str = ".longshoreignore";
/// The file that marks a cache folder (bford.info/cachedir).
const CACHE_MARK: &str = "CACHEDIR.TAG";
const CACHE_SIGNATURE: &[u8; 43] = b"Signature: 8a477f597d28d172789f06886806bc55";

pub(super) fn from_file(folder: &Path, file: &Path) -> Result<Option<Gitignore>, BundleError> {
    if !file.is_file() {
        return Ok(None);
    }
    let mut builder = GitignoreBuilder::new(folder);
    if let Some(error) = builder.add(file) {
        return Err(BundleError::Pattern {
            path: file.to_owned(),
            problem: error.to_string(),
        });
    }
    build(builder, file).map(Some)
}

/// Rules from a setting instead of a file. Errors contain the setting's `name`.
pub(super) fn rules(root: &Path, name: &str, lines: &[String]) -> Result<Gitignore, BundleError> {
    let mut builder = GitignoreBuilder::new(root);
    for line in lines {
        builder
            .add_line(None, line)
            .map_err(|error| BundleError::Pattern {
                path: PathBuf::from(name),
                problem: error.to_string(),
            })?;
    }
    build(builder, Path::new(name))
}

fn build(builder: GitignoreBuilder, path: &Path) -> Result<Gitignore, BundleError> {
    builder.build().map_err(|error| BundleError::Pattern {
        path: path.to_owned(),
        problem: error.to_string(),
    })
}

/// Returns true if a folder is marked as a cache.
pub(super) fn is_cache(folder: &Path) -> bool {
    let mut mark = [0; CACHE_SIGNATURE.len()];
    let file = folder.join(CACHE_MARK);
    // Does not block on a pipe of this name.
    file.is_file()
        && File::open(file).is_ok_and(|mut file| file.read_exact(&mut mark).is_ok())
        && mark == *CACHE_SIGNATURE
}
