//! The temporary file of a fetched file until it is complete.
//!
//! The name is derived from the content, so that an interrupted attempt leaves at most one file,
//! which the next attempt replaces. The file is locked while it is written. Another process that
//! fetches the same content into the same folder uses its own name, so neither gives the other's
//! incomplete file its final name.

use std::{fs::File, os::fd::OwnedFd};

use rustix::{
    fs::{
        AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, openat,
        renameat, renameat_with, statat, unlinkat,
    },
    io::Errno,
};

use super::OutputFile;

/// The number of times that another process may take the name.
const ATTEMPTS: u32 = 10;

/// A file that is being written.
pub(super) struct PartFile<'a> {
    folder: &'a OwnedFd,
    name: String,
    pub(super) file: File,
    is_named: bool,
}

impl<'a> PartFile<'a> {
    /// Creates an empty temporary file in the folder of the file.
    pub(super) fn create(folder: &'a OwnedFd, file: &OutputFile) -> Result<Self, Errno> {
        let content = file.sha256.get(..16).unwrap_or_default();
        let mode = Mode::from_raw_mode(if file.executable { 0o777 } else { 0o666 });
        for attempt in 0..ATTEMPTS {
            let name = match attempt {
                0 => format!(".longshore-{content}.part"),
                more => format!(".longshore-{content}-{}-{more}.part", std::process::id()),
            };
            if !remove_unlocked(folder, &name)? {
                continue;
            }
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let created = match openat(folder, name.as_str(), flags, mode) {
                Err(Errno::EXIST) => continue,
                created => created?,
            };
            // Another process may have removed the file before it was locked.
            if lock(&created) && is_at(folder, &name, &created) {
                return Ok(Self {
                    folder,
                    name,
                    file: created.into(),
                    is_named: false,
                });
            }
        }
        Err(Errno::AGAIN)
    }

    /// Gives the complete file its name. Unless `replace` is set, an existing file is an error.
    pub(super) fn rename(mut self, to: &str, replace: bool) -> Result<(), Errno> {
        let from = self.name.as_str();
        let renamed = match replace {
            true => renameat(self.folder, from, self.folder, to),
            false => rename_new(self.folder, from, to),
        };
        self.is_named = renamed.is_ok();
        renamed
    }
}

impl Drop for PartFile<'_> {
    fn drop(&mut self) {
        if !self.is_named {
            let _ = unlinkat(self.folder, self.name.as_str(), AtFlags::empty());
        }
    }
}

/// Removes the file of an interrupted attempt. Returns true if the name is free, and false if
/// another process writes the file.
fn remove_unlocked(folder: &OwnedFd, name: &str) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match openat(folder, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(true),
        opened => opened,
    };
    // Entries that cannot be opened, such as links, are not files of this program.
    let is_locked = opened.is_ok_and(|opened| is_file(&opened) && !lock(&opened));
    if is_locked {
        return Ok(false);
    }
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(error) => Err(error),
    }
}

fn is_file(file: &OwnedFd) -> bool {
    fstat(file).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)
}

/// Locks a file until it is closed. Returns true if no other process has locked it, or if the file
/// system has no locks.
fn lock(file: &OwnedFd) -> bool {
    let locked = flock(file, FlockOperation::NonBlockingLockExclusive);
    !matches!(locked, Err(Errno::WOULDBLOCK))
}

/// Returns true if this file has the name.
fn is_at(folder: &OwnedFd, name: &str, file: &OwnedFd) -> bool {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    match (found, fstat(file)) {
        (Ok(found), Ok(own)) => (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino),
        _ => false,
    }
}

/// Renames a file unless the new name exists.
fn rename_new(folder: &OwnedFd, from: &str, to: &str) -> Result<(), Errno> {
    match renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
        // Not all file systems support this rename.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            match statat(folder, to, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => Err(Errno::EXIST),
                Err(_) => renameat(folder, from, folder, to),
            }
        }
        renamed => renamed,
    }
}
