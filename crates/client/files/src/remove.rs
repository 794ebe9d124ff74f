//! Removes directory trees of any depth, width and permissions, with a few descriptors and a
//! stack of constant size. Programs that are not trusted choose the content of such trees.

use std::{
    ffi::{CStr, CString},
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags},
    io::Errno,
};

/// The maximum number of subdirectories that are listed before they are removed.
const BATCH: usize = 1024;
/// The depth below which directories are moved to the top of the tree, so that the memory for
/// the way back up is limited.
const MAX_DEPTH: usize = 4096;
/// Permissions of the owner that a removal needs.
const OWNER: u32 = 0o700;

const DIRECTORY: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Removes a directory with its content, or a file; succeeds if there is nothing at the path.
///
/// Symbolic links below the path are removed and never followed. File systems that are mounted
/// below the path are not entered. Directories that their owner may not write to are made
/// writable. The function does not recurse, and opens no more than five descriptors at a time.
///
/// # Errors
/// The first error; everything else has been removed as far as possible.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let name = CString::new(name.as_bytes())?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let flags = DIRECTORY.difference(OFlags::NOFOLLOW);
    let parent = match rustix::fs::openat(CWD, parent, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    match remove_entry(&parent, &name, FileType::Unknown)? {
        Removed::Yes => Ok(()),
        Removed::NotEmpty => match Removal::begin(parent, name)?.run() {
            // Another process has removed the tree, or a part of it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => match path.try_exists()? {
                true => Err(error),
                false => Ok(()),
            },
            result => result,
        },
    }
}

enum Removed {
    Yes,
    /// A directory that is not empty.
    NotEmpty,
}

/// Removes a file or an empty directory.
fn remove_entry(folder: &OwnedFd, name: &CStr, kind: FileType) -> Result<Removed, Errno> {
    if kind != FileType::Directory {
        match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(Removed::Yes),
            Err(Errno::ISDIR) => {}
            Err(error) => return Err(error),
        }
    }
    match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(Removed::Yes),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Removed::NotEmpty),
        Err(error) => Err(error),
    }
}

/// A directory by its device and inode.
type Identity = (u64, u64);

/// A directory whose content is being removed.
struct Level {
    name: CString,
    identity: Identity,
    /// Subdirectories that have entries.
    pending: Vec<CString>,
    /// True if `pending` has all subdirectories, or no more will be removed.
    is_listed: bool,
}

struct Removal {
    /// The directory that contains the tree.
    parent: OwnedFd,
    top: OwnedFd,
    /// The directory of the last level.
    current: OwnedFd,
    /// The levels from the top of the tree to the current directory; never empty before the end.
    levels: Vec<Level>,
    /// The number of directories that were moved to the top.
    moved: u64,
    first_error: Option<io::Error>,
}

impl Removal {
    fn begin(parent: OwnedFd, name: CString) -> io::Result<Self> {
        let (top, identity) = enter(&parent, &name)?;
        Ok(Self {
            parent,
            current: top.try_clone()?,
            top,
            levels: vec![Level::new(name, identity)],
            moved: 0,
            first_error: None,
        })
    }

    fn run(mut self) -> io::Result<()> {
        while let Some(level) = self.levels.last_mut() {
            if let Some(name) = level.pending.pop() {
                self.descend(name);
            } else if level.is_listed {
                self.ascend()?;
            } else if let Err(error) = level.remove_entries(&self.current) {
                self.fail(error);
            }
        }
        self.first_error.map_or(Ok(()), Err)
    }

    /// Records an error. The current directory cannot be removed then, so it is not read again.
    fn fail(&mut self, error: io::Error) {
        self.first_error.get_or_insert(error);
        if let Some(level) = self.levels.last_mut() {
            level.is_listed = true;
        }
    }

    /// Makes a subdirectory the current directory.
    fn descend(&mut self, name: CString) {
        if self.levels.len() >= MAX_DEPTH && self.move_to_top(&name) {
            return;
        }
        match enter(&self.current, &name) {
            Ok((folder, identity)) => {
                self.current = folder;
                self.levels.push(Level::new(name, identity));
            }
            Err(Errno::NOENT) => {}
            Err(error) => self.fail(named(&name, error)),
        }
    }

    /// Moves a subdirectory to the top of the tree; returns false if this is not possible.
    fn move_to_top(&mut self, name: &CStr) -> bool {
        let Ok(new) = CString::new(format!(".removed-{}", self.moved)) else {
            return false;
        };
        // A directory that has this name stays, or is replaced if it is empty.
        let is_moved = rustix::fs::renameat(&self.current, name, &self.top, &new).is_ok();
        if let (true, Some(top)) = (is_moved, self.levels.first_mut()) {
            self.moved += 1;
            top.pending.push(new);
        }
        is_moved
    }

    /// Removes the current directory, and makes the one above it the current directory.
    fn ascend(&mut self) -> io::Result<()> {
        let Some(done) = self.levels.pop() else {
            return Ok(());
        };
        let above = match self.levels.last() {
            Some(level) => parent_of(&self.current, level)?,
            None => self.parent.try_clone()?,
        };
        self.current = above;
        match remove_entry(&self.current, &done.name, FileType::Directory) {
            Ok(Removed::Yes) => {}
            Ok(Removed::NotEmpty) => self.fail(named(&done.name, Errno::NOTEMPTY)),
            Err(error) => self.fail(named(&done.name, error)),
        }
        Ok(())
    }
}

impl Level {
    fn new(name: CString, identity: Identity) -> Self {
        Self {
            name,
            identity,
            pending: Vec::new(),
            is_listed: false,
        }
    }

    /// Removes files and empty directories, and lists at most [`BATCH`] of the other directories.
    fn remove_entries(&mut self, folder: &OwnedFd) -> io::Result<()> {
        let mut first_error = None;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listing = rustix::fs::openat(folder, c".", flags, Mode::empty())?;
        for entry in Dir::new(listing)? {
            let entry = entry?;
            let name = entry.file_name();
            if [c".", c".."].contains(&name) {
                continue;
            }
            match remove_entry(folder, name, entry.file_type()) {
                Ok(Removed::Yes) => {}
                Ok(Removed::NotEmpty) => self.pending.push(name.to_owned()),
                Err(error) => drop(first_error.get_or_insert(named(name, error))),
            }
            if self.pending.len() == BATCH {
                return first_error.map_or(Ok(()), Err);
            }
        }
        self.is_listed = true;
        first_error.map_or(Ok(()), Err)
    }
}

/// Opens a subdirectory, and permits its owner to change it.
fn enter(folder: &OwnedFd, name: &CStr) -> Result<(OwnedFd, Identity), Errno> {
    // The tree may contain mounts, which are not part of it.
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    let opened = match rustix::fs::openat2(folder, name, DIRECTORY, Mode::empty(), resolve) {
        // The kernel is old, or a filter denies the call.
        Err(Errno::NOSYS | Errno::PERM) => {
            rustix::fs::openat(folder, name, DIRECTORY, Mode::empty())?
        }
        opened => opened?,
    };
    let found = rustix::fs::fstat(&opened)?;
    if found.st_mode & OWNER != OWNER {
        // Other users' directories keep their modes; the removal then fails.
        let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let _ = rustix::fs::chmod(path, Mode::from_raw_mode(OWNER));
    }
    Ok((opened, (found.st_dev, found.st_ino)))
}

/// Opens the directory above, which must be the one of this level.
fn parent_of(folder: &OwnedFd, level: &Level) -> io::Result<OwnedFd> {
    let above = rustix::fs::openat(folder, c"..", DIRECTORY, Mode::empty())?;
    let found = rustix::fs::fstat(&above)?;
    if (found.st_dev, found.st_ino) != level.identity {
        return Err(io::Error::other("it was moved while it was being removed"));
    }
    Ok(above)
}

fn named(name: &CStr, error: Errno) -> io::Error {
    let error = io::Error::from(error);
    let text = format!("{}: {error}", name.to_string_lossy());
    io::Error::new(error.kind(), text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
        path::PathBuf,
    };

    use proptest::prelude::*;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Creates entries below a folder: directories, files and links to `outside`.
    fn make(folder: &Path, outside: &Path, entries: &[(Vec<u8>, u8)]) {
        for (path, kind) in entries {
            let names = path.iter().map(|name| name.to_string());
            let path: PathBuf = std::iter::once(folder.to_owned())
                .chain(names.map(PathBuf::from))
                .collect();
            let _ = match kind {
                0 => fs::create_dir_all(&path),
                1 => fs::write(&path, "x"),
                2 => symlink(outside, &path),
                _ => fs::create_dir_all(&path).map(|()| set_mode(&path, 0)),
            };
        }
    }

    proptest! {
        #[test]
        fn nothing_of_a_tree_stays_and_nothing_outside_is_touched(
            entries in prop::collection::vec((prop::collection::vec(0_u8..4, 1..9), 0_u8..4), 0..60),
        ) {
            let temp = tempfile::tempdir().unwrap();
            let (tree, outside) = (temp.path().join("tree"), temp.path().join("outside"));
            fs::create_dir(&tree).unwrap();
            fs::create_dir(&outside).unwrap();
            fs::write(outside.join("file"), "kept").unwrap();
            make(&tree, &outside, &entries);
            remove_tree(&tree).unwrap();
            prop_assert!(tree.symlink_metadata().is_err());
            prop_assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "kept");
        }
    }

    #[test]
    fn links_and_files_and_missing_paths_are_removed() {
        let temp = tempfile::tempdir().unwrap();
        let (outside, link) = (temp.path().join("outside"), temp.path().join("link"));
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "kept").unwrap();
        symlink(&outside, &link).unwrap();
        remove_tree(&link).unwrap();
        remove_tree(&link).unwrap();
        remove_tree(&temp.path().join("missing/below")).unwrap();
        assert!(link.symlink_metadata().is_err() && outside.join("file").exists());
        remove_tree(&outside.join("file")).unwrap();
        assert!(remove_tree(Path::new("/")).is_err());
        assert!(remove_tree(&outside.join("..")).is_err());
    }

    #[test]
    fn directories_with_many_subdirectories_are_removed() {
        let temp = tempfile::tempdir().unwrap();
        let tree = temp.path().join("tree");
        for number in 0..2 * BATCH + 10 {
            fs::create_dir_all(tree.join(number.to_string()).join("inner")).unwrap();
        }
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }

    #[test]
    fn what_can_be_removed_is_removed_despite_an_error() {
        let temp = tempfile::tempdir().unwrap();
        let tree = temp.path().join("tree");
        for name in ["a/b", "c/d", "e"] {
            fs::create_dir_all(tree.join(name)).unwrap();
            fs::write(tree.join(name).join("file"), "x").unwrap();
        }
        // A file that cannot be removed, where this test may make one.
        let kept = tree.join("c/d/file");
        let Ok(()) = set_immutable(&kept, true) else {
            return;
        };
        let error = remove_tree(&tree).unwrap_err().to_string();
        let left = (
            kept.exists(),
            tree.join("a").exists(),
            tree.join("e").exists(),
        );
        set_immutable(&kept, false).unwrap();
        assert_eq!(left, (true, false, false), "{error}");
        assert!(error.starts_with("file: "), "{error}");
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }

    fn set_immutable(path: &Path, value: bool) -> io::Result<()> {
        let file = fs::File::open(path)?;
        let mut flags = rustix::fs::ioctl_getflags(&file)?;
        flags.set(rustix::fs::IFlags::IMMUTABLE, value);
        Ok(rustix::fs::ioctl_setflags(&file, flags)?)
    }
}
