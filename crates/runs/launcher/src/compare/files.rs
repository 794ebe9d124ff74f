//! The differences of two folders of code.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;
use similar::TextDiff;

/// The maximum number of lines of all differences together.
pub const LONGEST_DIFF: usize = 2000;
/// The largest file whose lines are compared, in bytes.
const LARGEST_TEXT: u64 = 1 << 20;
/// The maximum time to search for the shortest difference of a file.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// The path in the folder.
    pub path: String,
    /// `added`, `removed` or `changed`.
    pub change: &'static str,
    /// The unified difference, if both are text.
    pub diff: Option<String>,
    /// The reason why the difference is missing or incomplete.
    pub omitted: Option<String>,
}

/// A file of a folder.
#[derive(Debug, PartialEq)]
enum Content {
    Text(String),
    /// A binary or large file, whose bytes are compared.
    Bytes(PathBuf, u64),
    Link(PathBuf),
}

/// Compares the files of two folders.
pub(super) fn compare(one: &Path, other: &Path) -> io::Result<Vec<FileChange>> {
    let (one, other) = (read(one)?, read(other)?);
    let added = other.keys().filter(|path| !one.contains_key(*path));
    let mut paths: Vec<&String> = one.keys().chain(added).collect();
    paths.sort();
    let mut room = LONGEST_DIFF;
    let mut changes = Vec::new();
    for path in paths {
        let (old, new) = (one.get(path), other.get(path));
        if !differs(old, new)? {
            continue;
        }
        let change = match (old, new) {
            (None, _) => "added",
            (_, None) => "removed",
            _ => "changed",
        };
        let (diff, omitted) = match (text(old), text(new)) {
            (Some(old), Some(new)) => limited(&unified(path, old, new), &mut room),
            _ => (None, Some("not text, or larger than 1 MiB".to_owned())),
        };
        changes.push(FileChange {
            path: path.clone(),
            change,
            diff,
            omitted,
        });
    }
    Ok(changes)
}

/// The text of a file; an absent file is empty.
fn text(content: Option<&Content>) -> Option<&str> {
    match content {
        None => Some(""),
        Some(Content::Text(text)) => Some(text),
        Some(_) => None,
    }
}

fn differs(old: Option<&Content>, new: Option<&Content>) -> io::Result<bool> {
    match (old, new) {
        (Some(Content::Bytes(old, size)), Some(Content::Bytes(new, other))) => {
            Ok(size != other || fs::read(old)? != fs::read(new)?)
        }
        (old, new) => Ok(old != new),
    }
}

fn unified(path: &str, old: &str, new: &str) -> String {
    let mut diff = TextDiff::configure();
    let diff = diff.timeout(TIMEOUT).diff_lines(old, new);
    let (from, to) = (format!("a/{path}"), format!("b/{path}"));
    let mut unified = diff.unified_diff();
    unified.context_radius(3).header(&from, &to).to_string()
}

/// The lines of the difference that fit in the remaining limit.
fn limited(diff: &str, room: &mut usize) -> (Option<String>, Option<String>) {
    let count = diff.lines().count();
    if count <= *room {
        *room -= count;
        return (Some(diff.to_owned()), None);
    }
    let shown: Vec<&str> = diff.lines().take(*room).collect();
    let omitted = format!("{} more lines", count - shown.len());
    *room = 0;
    let shown = (!shown.is_empty()).then(|| shown.join("\n") + "\n");
    (shown, Some(omitted))
}

/// The files of a folder by path.
fn read(folder: &Path) -> io::Result<BTreeMap<String, Content>> {
    let mut files = BTreeMap::new();
    let mut next = vec![folder.to_owned()];
    while let Some(current) = next.pop() {
        for entry in fs::read_dir(&current)? {
            let path = entry?.path();
            let kind = fs::symlink_metadata(&path)?;
            let name = path.strip_prefix(folder).unwrap_or(&path);
            let name = name.to_string_lossy().into_owned();
            if kind.is_dir() {
                next.push(path);
            } else if kind.is_symlink() {
                files.insert(name, Content::Link(fs::read_link(&path)?));
            } else {
                files.insert(name, content(path, kind.len())?);
            }
        }
    }
    Ok(files)
}

fn content(path: PathBuf, size: u64) -> io::Result<Content> {
    if size > LARGEST_TEXT {
        return Ok(Content::Bytes(path, size));
    }
    match String::from_utf8(fs::read(&path)?) {
        Ok(text) if !text.contains('\0') => Ok(Content::Text(text)),
        _ => Ok(Content::Bytes(path, size)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        folder
    }

    #[test]
    fn files_are_compared_by_their_lines() {
        let one = folder(&[
            ("same", b"1\n"),
            ("train.py", b"a\nb\nc\n"),
            ("old", b"x\n"),
            ("data.bin", b"\0\x01"),
        ]);
        let other = folder(&[
            ("same", b"1\n"),
            ("train.py", b"a\nB\nc\n"),
            ("lib/new", b"y\n"),
            ("data.bin", b"\0\x02"),
        ]);
        let found = compare(one.path(), other.path()).unwrap();
        let brief: Vec<String> = found
            .iter()
            .map(|file| format!("{} {} {}", file.change, file.path, file.diff.is_some()))
            .collect();
        assert_eq!(
            brief,
            [
                "changed data.bin false",
                "added lib/new true",
                "removed old true",
                "changed train.py true"
            ]
        );
        assert_eq!(
            found[3].diff.as_deref(),
            Some("--- a/train.py\n+++ b/train.py\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")
        );
        assert!(compare(one.path(), one.path()).unwrap().is_empty());
    }

    #[test]
    fn long_differences_are_cut_and_say_so() {
        let long = "x\n".repeat(LONGEST_DIFF + 100);
        let one = folder(&[("a", b""), ("b", b"")]);
        let other = folder(&[("a", long.as_bytes()), ("b", b"1\n")]);
        let found = compare(one.path(), other.path()).unwrap();
        assert_eq!(
            found[0].diff.as_ref().unwrap().lines().count(),
            LONGEST_DIFF
        );
        assert_eq!(found[0].omitted.as_deref(), Some("103 more lines"));
        assert_eq!(found[1].diff, None);
        assert_eq!(found[1].omitted.as_deref(), Some("4 more lines"));
    }
}
