//! Replaces files atomically: after a crash or a power failure, a file has either its old
//! or its new content.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use crate::{Error, check_output_dir, file::read_optional};

/// The durability of a replaced file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Syncs the file and its directory to disk.
    Durable,
    /// Syncs nothing. For files that are of no use after the process or the machine has stopped.
    Volatile,
}

/// Replaces a file in a private directory. The new file has mode 0600. Only one process at
/// a time may replace a file: `replace` deletes the temporary file of another process, which
/// may be left over from a crash.
///
/// # Errors
/// [`Error::Io`].
pub fn replace(path: &Path, content: &[u8], durability: Durability) -> Result<(), Error> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let written = write_new(&new, content, durability)
        .and_then(|()| {
            #[cfg(test)]
            tests::record("rename");
            fs::rename(&new, path)
        })
        .map_err(Error::io("write", path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written?;
    match durability {
        Durability::Durable => sync_dir(parent(path)),
        Durability::Volatile => Ok(()),
    }
}

/// Replaces a file like [`replace`], but does nothing if the file already has this content.
///
/// # Errors
/// The errors of [`replace`] and [`read_optional`].
pub fn replace_if_changed(
    path: &Path,
    content: &[u8],
    durability: Durability,
) -> Result<(), Error> {
    match read_optional(path)? {
        Some(old) if old == content => Ok(()),
        _ => replace(path, content, durability),
    }
}

/// Replaces an output file for other programs, durably and with mode 0600. Other users must
/// not be able to write to its directory. Several processes may replace the file at once.
///
/// # Errors
/// [`Error::Untrusted`]: others may write to the directory. [`Error::Io`].
pub fn replace_output(path: &Path, content: &[u8]) -> Result<(), Error> {
    let dir = parent(path);
    fs::create_dir_all(dir).map_err(Error::io("create the directory", dir))?;
    check_output_dir(dir)?;
    // tempfile creates the file with mode 0600 and a new name.
    let mut file = tempfile::NamedTempFile::new_in(dir).map_err(Error::io("write in", dir))?;
    file.write_all(content)
        .and_then(|()| sync(file.as_file()))
        .map_err(Error::io("write", path))?;
    #[cfg(test)]
    tests::record("rename");
    file.persist(path)
        .map_err(|error| Error::io("write", path)(error.error))?;
    sync_dir(dir)
}

fn write_new(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)?;
    match durability {
        Durability::Durable => sync(&file),
        Durability::Volatile => Ok(()),
    }
}

/// Syncs a directory to disk, so that changes to its entries are durable.
///
/// # Errors
/// [`Error::Io`].
pub fn sync_dir(dir: &Path) -> Result<(), Error> {
    match File::open(dir).and_then(|dir| sync(&dir)) {
        // Some file systems, for example in user space, do not support this.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result.map_err(Error::io("sync", dir)),
    }
}

fn sync(file: &File) -> io::Result<()> {
    #[cfg(test)]
    tests::record(match file.metadata()?.is_dir() {
        true => "sync directory",
        false => "sync file",
    });
    file.sync_all()
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{
        cell::RefCell,
        os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    };

    use super::*;

    thread_local! {
        static STEPS: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
    }

    /// Records a step of this thread.
    pub(super) fn record(step: &'static str) {
        STEPS.with_borrow_mut(|steps| steps.push(step));
    }

    fn steps(write: impl FnOnce()) -> Vec<&'static str> {
        STEPS.take();
        write();
        STEPS.take()
    }

    #[test]
    fn a_file_is_synced_before_the_rename_and_the_directory_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings");
        let durable = ["sync file", "rename", "sync directory"];
        let recorded = steps(|| replace(&path, b"one", Durability::Durable).unwrap());
        assert_eq!(recorded, durable);
        let recorded = steps(|| replace_if_changed(&path, b"two", Durability::Durable).unwrap());
        assert_eq!(recorded, durable);
        let recorded = steps(|| replace_output(&path, b"three").unwrap());
        assert_eq!(recorded, durable);
        let recorded = steps(|| replace(&path, b"four", Durability::Volatile).unwrap());
        assert_eq!(recorded, ["rename"]);
    }

    #[test]
    fn a_replaced_file_is_private_and_no_temporary_file_remains() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        // The temporary file of a killed process, and a link in place of the file.
        fs::write(folder.path().join("secret.new"), "half").unwrap();
        symlink(folder.path().join("elsewhere"), &path).unwrap();
        replace(&path, b"one", Durability::Durable).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        replace(&path, b"two", Durability::Durable).unwrap();
        replace_if_changed(&path, b"two", Durability::Durable).unwrap();
        assert_eq!(read_optional(&path).unwrap().unwrap(), b"two");
        assert_eq!(path.symlink_metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_unchanged_file_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        replace_if_changed(&path, b"one", Durability::Durable).unwrap();
        let before = path.metadata().unwrap().ino();
        replace_if_changed(&path, b"one", Durability::Durable).unwrap();
        assert_eq!(path.metadata().unwrap().ino(), before);
        replace_if_changed(&path, b"two", Durability::Durable).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }

    #[test]
    fn output_is_rejected_in_a_directory_that_others_may_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/config");
        replace_output(&path, b"one").unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        let dir = path.parent().unwrap();
        fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).unwrap();
        let error = replace_output(&path, b"two").unwrap_err();
        assert!(matches!(error, Error::Untrusted { .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }
}
