//! Virtual environments of Python, which work only on the machine where they were created.

use std::path::Path;

/// Whether a folder is a virtual environment of Python, or one of conda.
#[must_use]
pub fn is_environment(folder: &Path) -> bool {
    folder.join("pyvenv.cfg").is_file() || folder.join("conda-meta").is_dir()
}
