//! The text of a settings file, and its path for errors.

use std::path::{Path, PathBuf};

use super::located::line_and_column;

/// A settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The path of the file.
    pub path: PathBuf,
    /// The content of the file.
    pub text: String,
}

impl Source {
    /// A position in the file, as in `longshore.toml:3:9`.
    pub(super) fn at(&self, offset: usize) -> String {
        let path = self.path.display();
        match line_and_column(&self.text, offset) {
            Some((line, column)) => format!("{path}:{line}:{column}"),
            None => path.to_string(),
        }
    }
}

/// The maximum size of a settings file, in bytes.
const LARGEST_FILE: u64 = 4 << 20;

/// Reads a file as UTF-8 text.
pub(super) fn read_text(path: &Path) -> std::io::Result<String> {
    let bytes = longshore_files::read_limited(path, LARGEST_FILE)?;
    String::from_utf8(bytes).map_err(|_| {
        let text = "it is not UTF-8 text";
        std::io::Error::new(std::io::ErrorKind::InvalidData, text)
    })
}
