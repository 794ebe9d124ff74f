//! Opens private files.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

use crate::{
    Error,
    dir::facts,
    trust::{SHARED, User},
};

/// The maximum size of a private file that is read as a whole. These files are small.
const READ_LIMIT: u64 = 16 << 20;

/// The access with which a private file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading. The file must exist.
    Read,
    /// For reading, without changing the file's mode. The file must exist.
    Inspect,
    /// For reading and writing. Creates the file if it does not exist.
    ReadWrite,
    /// For reading and appending. Creates the file if it does not exist.
    Append,
}

/// Opens a private file without following a symbolic link. A new file has mode 0600. If
/// other users may read an existing file of this user, its mode becomes 0600.
///
/// # Errors
/// [`Error::Untrusted`]: the path is a link or not a regular file, another user owns the
/// file, or others may write to it. [`Error::Io`]: the file cannot be opened.
pub fn open(path: &Path, mode: OpenMode) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true);
    match mode {
        OpenMode::Read | OpenMode::Inspect => &mut options,
        OpenMode::ReadWrite => options.write(true).create(true),
        OpenMode::Append => options.append(true).create(true),
    };
    // NONBLOCK: opening a named pipe must not block before the pipe is rejected.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = options
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = opened.map_err(|error| {
        match error
            .raw_os_error()
            .map(rustix::io::Errno::from_raw_os_error)
        {
            Some(rustix::io::Errno::LOOP) => refused(path, "it is a symbolic link"),
            Some(rustix::io::Errno::NXIO) => refused(path, "it is not a regular file"),
            _ => Error::io("open", path)(error),
        }
    })?;
    check(path, &file, mode)?;
    Ok(file)
}

fn check(path: &Path, file: &File, mode: OpenMode) -> Result<(), Error> {
    let found = file.metadata().map_err(Error::io("look at", path))?;
    if !found.is_file() {
        return Err(refused(path, "it is not a regular file"));
    }
    User::current().check_own(path, facts(&found))?;
    if found.mode() & SHARED != 0 && mode != OpenMode::Inspect {
        file.set_permissions(fs::Permissions::from_mode(0o600))
            .map_err(Error::io("change the mode of", path))?;
    }
    Ok(())
}

fn refused(path: &Path, problem: &str) -> Error {
    Error::Untrusted {
        path: path.to_owned(),
        problem: problem.to_owned(),
        remedy: format!("remove it: `rm {}`", path.display()),
    }
}

/// Makes later reads of a file return what is on the disk. After a failed sync, they may
/// otherwise return cached pages that were never written.
///
/// # Errors
/// The file cannot be synced.
pub fn read_from_disk(file: &File) -> io::Result<()> {
    file.sync_all()?;
    // Advice: some file systems, for example in memory, have no other copy.
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    Ok(())
}

/// Reads a private file as a whole. `None` if it does not exist.
///
/// # Errors
/// The errors of [`open`], and [`Error::Io`] if the file is larger than 16 MiB.
pub fn read_optional(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    read_as(path, OpenMode::Read)
}

/// Reads a private file like [`read_optional`], but does not change the file's mode.
///
/// # Errors
/// The same as [`read_optional`].
pub fn inspect_optional(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    read_as(path, OpenMode::Inspect)
}

fn read_as(path: &Path, mode: OpenMode) -> Result<Option<Vec<u8>>, Error> {
    let file = match open(path, mode) {
        Ok(file) => file,
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    let read = file.take(READ_LIMIT + 1).read_to_end(&mut bytes);
    read.map_err(Error::io("read", path))?;
    if bytes.len() as u64 > READ_LIMIT {
        return Err(Error::io("read", path)(io::ErrorKind::FileTooLarge.into()));
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn problem(result: Result<File, Error>) -> String {
        match result {
            Err(Error::Untrusted { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn new_and_existing_files_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        open(&path, OpenMode::Append).unwrap();
        let mode = || path.metadata().unwrap().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        inspect_optional(&path).unwrap();
        assert_eq!(mode(), 0o644);
        open(&path, OpenMode::Read).unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(problem(open(&path, OpenMode::Read)).contains("every user"));
    }

    #[test]
    fn links_pipes_and_directories_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        symlink(&target, &link).unwrap();
        for mode in [OpenMode::Read, OpenMode::ReadWrite, OpenMode::Append] {
            assert!(problem(open(&link, mode)).contains("symbolic link"));
        }
        assert!(!target.exists());
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        for mode in [OpenMode::Read, OpenMode::ReadWrite] {
            assert!(problem(open(&pipe, mode)).contains("regular"));
        }
        assert!(problem(open(folder.path(), OpenMode::Read)).contains("regular"));
    }

    #[test]
    fn files_of_other_users_are_rejected() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "{}").unwrap();
        chown(&path, Some(65534), None).unwrap();
        assert!(problem(open(&path, OpenMode::Read)).contains("65534"));
        assert!(read_optional(&path).is_err());
    }

    #[test]
    fn a_missing_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read_optional(&folder.path().join("x")).unwrap().is_none());
    }
}
