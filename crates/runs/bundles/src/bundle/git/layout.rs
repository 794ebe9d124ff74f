//! Finds the repository of a folder, and the folders where git keeps it.

use std::{
    ffi::OsStr,
    fs::{self, OpenOptions},
    io::Read as _,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

/// The longest `HEAD`, `commondir` or `.git` file to read.
const MAX_SMALL_FILE_BYTES: u64 = 1 << 16;

/// A git repository with a folder of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::bundle) struct Repository {
    /// The folder that contains `.git`, a folder or a file.
    pub(super) folder: PathBuf,
    /// The folder of the index.
    pub(super) git_dir: PathBuf,
    /// The folder of the configuration, which the worktrees of a repository share.
    pub(super) common_dir: PathBuf,
}

impl Repository {
    /// The repository that contains a folder. Like git, does not search other file systems.
    pub(in crate::bundle) fn containing(folder: &Path) -> Option<Self> {
        let device = |folder: &Path| folder.metadata().ok().map(|found| found.dev());
        let own = device(folder);
        folder
            .ancestors()
            .take_while(|folder| device(folder) == own)
            .find_map(Self::at)
    }

    /// The repository whose top folder is `folder`.
    pub(in crate::bundle) fn at(folder: &Path) -> Option<Self> {
        let entry = folder.join(".git");
        let git_dir = if entry.is_dir() {
            entry
        } else {
            let text = read_small(&entry)?;
            let path = text.strip_prefix(b"gitdir: ")?;
            folder.join(path_of(path))
        };
        let common_dir = match read_small(&git_dir.join("commondir")) {
            Some(text) => git_dir.join(path_of(&text)),
            None => git_dir.clone(),
        };
        let is_repository = has_head(&git_dir)
            && common_dir.join("objects").is_dir()
            && common_dir.join("refs").is_dir();
        is_repository.then(|| Self {
            folder: folder.to_owned(),
            git_dir,
            common_dir,
        })
    }
}

/// Returns true if `HEAD` refers to a branch or a commit.
fn has_head(git_dir: &Path) -> bool {
    let head = git_dir.join("HEAD");
    if let Ok(target) = fs::read_link(&head) {
        return target.starts_with("refs");
    }
    let Some(text) = read_small(&head) else {
        return false;
    };
    if let Some(name) = text.strip_prefix(b"ref:") {
        return name.trim_ascii_start().starts_with(b"refs/");
    }
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit());
    digits.count() >= 40
}

/// The path in a file of one line.
pub(super) fn path_of(text: &[u8]) -> &Path {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'));
    let text = &text[..end.map_or(0, |last| last + 1)];
    Path::new(OsStr::from_bytes(text))
}

fn read_small(path: &Path) -> Option<Vec<u8>> {
    read_regular(path, MAX_SMALL_FILE_BYTES)
}

/// The content of a regular file with at most `max_bytes`.
pub(super) fn read_regular(path: &Path, max_bytes: u64) -> Option<Vec<u8>> {
    read_with(path, max_bytes, OFlags::NONBLOCK)
}

/// Like [`read_regular`], but does not follow a link.
pub(super) fn read_without_link(path: &Path, max_bytes: u64) -> Option<Vec<u8>> {
    read_with(path, max_bytes, OFlags::NONBLOCK | OFlags::NOFOLLOW)
}

/// `NONBLOCK`: a pipe of this name must not block the reader.
fn read_with(path: &Path, max_bytes: u64, flags: OFlags) -> Option<Vec<u8>> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > max_bytes {
        return None;
    }
    let mut text = Vec::new();
    file.take(max_bytes).read_to_end(&mut text).ok()?;
    Some(text)
}
