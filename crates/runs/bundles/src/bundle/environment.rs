//! Virtual environments of Python, which work only on the machine where they were created.

use std::path::Path;

/// The entries of an environment's folder.
const PARTS: [&str; 6] = ["bin", "include", "lib", "lib64", "pyvenv.cfg", "share"];

/// Returns true if a folder, or the folder that a link points to, is a virtual environment of
/// Python or of conda.
#[must_use]
pub fn is_environment(folder: &Path) -> bool {
    folder.join("pyvenv.cfg").is_file() || folder.join("conda-meta").is_dir()
}

/// Returns true if an entry of a virtual environment that also contains the code is a part of
/// the environment.
pub(super) fn is_part(path: &Path) -> bool {
    path.to_str().is_some_and(|name| PARTS.contains(&name))
}
