//! Patterns of .gitignore files and git's other exclude files.

use std::path::Path;

use gix_ignore::glob::{Pattern, pattern::Case, wildmatch};

use super::layout::{read_regular, read_without_link};

/// Git ignores larger exclude files.
const MAX_FILE_BYTES: u64 = 100 << 20;

/// The result of matching a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bundle) enum Verdict {
    Ignored,
    /// A pattern with `!` matches.
    Included,
}

/// The patterns of one file. Lines that match nothing are left out, as in git.
#[derive(Debug, Clone, Default)]
pub(in crate::bundle) struct Patterns {
    /// The patterns in the order of the file. The last matching pattern decides.
    patterns: Vec<Pattern>,
    /// The length of the path of the file's folder, which is not matched.
    skipped: usize,
}

impl Patterns {
    /// Reads a file with patterns for the whole repository. An entry that cannot be read has no
    /// patterns.
    pub(super) fn of_repository(file: &Path) -> Self {
        Self {
            patterns: parse(&read_regular(file, MAX_FILE_BYTES).unwrap_or_default()),
            skipped: 0,
        }
    }

    /// Reads the .gitignore file of a folder, unless it is a link. `skipped`: the length of the
    /// folder's path in the repository, with a slash at its end.
    pub(super) fn of_folder(folder: &Path, skipped: usize) -> Self {
        let file = folder.join(".gitignore");
        Self {
            patterns: parse(&read_without_link(&file, MAX_FILE_BYTES).unwrap_or_default()),
            skipped,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Matches a path of the repository that is below the folder of the file.
    pub(super) fn matched(&self, path: &[u8], is_folder: bool, case: Case) -> Option<Verdict> {
        let found = &self.patterns[self.position(path, is_folder, case)?];
        Some(match found.is_negative() {
            true => Verdict::Included,
            false => Verdict::Ignored,
        })
    }

    /// Removes the pattern that decides on a path.
    pub(super) fn remove_match(&mut self, path: &[u8], is_folder: bool, case: Case) {
        if let Some(position) = self.position(path, is_folder, case) {
            self.patterns.remove(position);
        }
    }

    /// The position of the pattern that decides on a path.
    fn position(&self, path: &[u8], is_folder: bool, case: Case) -> Option<usize> {
        let path = path.get(self.skipped..)?;
        let name = path.iter().rposition(|byte| *byte == b'/');
        let name = name.map(|slash| slash + 1);
        let mode = wildmatch::Mode::NO_MATCH_SLASH_LITERAL;
        self.patterns.iter().rposition(|pattern| {
            pattern.matches_repo_relative_path(path.into(), name, Some(is_folder), case, mode)
        })
    }
}

fn parse(text: &[u8]) -> Vec<Pattern> {
    // A line ends at its first NUL, and the last one needs no newline.
    let mut lines = Vec::with_capacity(text.len() + 1);
    for line in text.split(|byte| *byte == b'\n') {
        let end = line.iter().position(|byte| *byte == 0);
        lines.extend_from_slice(&line[..end.unwrap_or(line.len())]);
        lines.push(b'\n');
    }
    let patterns = gix_ignore::parse(&lines, false);
    patterns.map(|(pattern, ..)| pattern).collect()
}
