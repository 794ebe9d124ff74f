//! Finds the matching files of a task's folder. Processes of the task may still change it, and
//! links in it may lead anywhere, so each folder is opened by its name in the parent folder.

use std::{fs::File, io, os::fd::OwnedFd, path::Path};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, statat,
};

use super::{
    LeftOut, Reason,
    path::{DEEPEST, is_plain, shown},
    patterns::Patterns,
};

/// The maximum number of entries of folders to read.
const MOST_ENTRIES: u64 = 2_000_000;
/// The maximum number of matching files to remember.
const MOST_FOUND: usize = 200_000;
/// The maximum number of entries to remember that cannot be kept.
const MOST_LEFT_OUT: usize = 10_000;

/// The folder of a task, and the entries that were found in it.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) root: OwnedFd,
    /// The matching files and links, sorted by path.
    pub(super) found: Vec<Found>,
    /// The entries that cannot be kept.
    pub(super) left_out: Vec<LeftOut>,
    /// The number of further such entries.
    pub(super) left_out_more: u64,
    entries: u64,
}

/// A matching file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Found {
    pub(super) path: String,
    /// True for a symbolic link.
    pub(super) is_link: bool,
}

pub(super) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Flags for opening a file, which do not block on a pipe until a writer opens it.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

impl Tree {
    /// Reads the folder `name` in `volume`. `None` if it does not exist.
    pub(super) fn read(volume: &Path, name: &str, patterns: &Patterns) -> io::Result<Option<Self>> {
        let open = |folder: &OwnedFd| openat(folder, name, FOLDER, Mode::empty());
        let volume = openat(CWD, volume, FOLDER, Mode::empty());
        let root = match volume.and_then(|volume| open(&volume)) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            root => root?,
        };
        let mut tree = Self {
            root,
            found: Vec::new(),
            left_out: Vec::new(),
            left_out_more: 0,
            entries: 0,
        };
        let top = openat(&tree.root, ".", FOLDER, Mode::empty())?;
        tree.folder(&top, "", 1, patterns)?;
        tree.found.sort();
        Ok(Some(tree))
    }

    fn leave_out(&mut self, path: &str, reason: Reason) {
        if self.left_out.len() < MOST_LEFT_OUT {
            let path = shown(path);
            self.left_out.push(LeftOut { path, reason });
        } else {
            self.left_out_more = self.left_out_more.saturating_add(1);
        }
    }

    fn folder(
        &mut self,
        folder: &OwnedFd,
        path: &str,
        depth: usize,
        patterns: &Patterns,
    ) -> io::Result<()> {
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            self.entries = self.entries.saturating_add(1);
            if self.entries > MOST_ENTRIES || self.found.len() >= MOST_FOUND {
                // Reported only once, for the first folder that is not read to its end.
                if self.left_out.last().map(|last| last.reason) != Some(Reason::TooMany) {
                    self.leave_out(if path.is_empty() { "." } else { path }, Reason::TooMany);
                }
                return Ok(());
            }
            let name = String::from_utf8_lossy(bytes);
            let own = match path {
                "" => name.to_string(),
                path => format!("{path}/{name}"),
            };
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let found = statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
                    found.map_or(FileType::Unknown, |found| {
                        FileType::from_raw_mode(found.st_mode)
                    })
                }
                kind => kind,
            };
            let is_wanted = match kind {
                FileType::Directory => patterns.may_be_in(&own),
                _ => patterns.has(&own),
            };
            if !is_wanted {
                continue;
            }
            // Checks the whole path, because a list with a path that is too long could not be read.
            if std::str::from_utf8(bytes).is_err() || !is_plain(&own) {
                self.leave_out(&own, Reason::Name);
                continue;
            }
            match kind {
                FileType::Directory if depth >= DEEPEST => self.leave_out(&own, Reason::TooMany),
                FileType::Directory => {
                    let below = openat(folder, entry.file_name(), FOLDER, Mode::empty());
                    let read = below
                        .map_err(io::Error::from)
                        .and_then(|below| self.folder(&below, &own, depth + 1, patterns));
                    if read.is_err() {
                        self.leave_out(&own, Reason::Unreadable);
                    }
                }
                FileType::RegularFile => self.found.push(Found {
                    path: own,
                    is_link: false,
                }),
                FileType::Symlink => self.found.push(Found {
                    path: own,
                    is_link: true,
                }),
                _ => self.leave_out(&own, Reason::NotAFile),
            }
        }
        Ok(())
    }

    /// Opens a file. The links of the path may only lead to files in the folder.
    pub(super) fn open(&self, found: &Found) -> Result<File, Reason> {
        let opened = match found.is_link {
            true => {
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
                let opened = openat2(
                    &self.root,
                    found.path.as_str(),
                    FILE,
                    Mode::empty(),
                    resolve,
                );
                opened.map_err(|_| Reason::Link)
            }
            false => self.open_without_links(&found.path),
        };
        let file = opened?;
        let is_file = fstat(&file)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        match (is_file, found.is_link) {
            (true, _) => Ok(file.into()),
            (false, true) => Err(Reason::Link),
            (false, false) => Err(Reason::NotAFile),
        }
    }

    fn open_without_links(&self, path: &str) -> Result<OwnedFd, Reason> {
        let unreadable = |_| Reason::Unreadable;
        let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
        let mut folder = openat(&self.root, ".", FOLDER, Mode::empty()).map_err(unreadable)?;
        for part in above.split('/') {
            folder = openat(&folder, part, FOLDER, Mode::empty()).map_err(unreadable)?;
        }
        openat(&folder, name, FILE | OFlags::NOFOLLOW, Mode::empty()).map_err(unreadable)
    }
}
