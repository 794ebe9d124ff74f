//! The text of a file of settings, and its path for errors.

use std::path::{Path, PathBuf};

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its path.
    pub path: PathBuf,
    /// What is in it.
    pub text: String,
}

/// The largest file of settings, in bytes.
const LARGEST_FILE: u64 = 4 << 20;

/// The text of a file, which may be anything.
pub(super) fn read_text(path: &Path) -> std::io::Result<String> {
    let bytes = longshore_files::read_limited(path, LARGEST_FILE)?;
    String::from_utf8(bytes).map_err(|_| {
        let text = "it is not UTF-8 text";
        std::io::Error::new(std::io::ErrorKind::InvalidData, text)
    })
}
