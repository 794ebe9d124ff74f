//! Replacing files as a whole, so that a crash or a power failure leaves the old
//! content or the new, never a part.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use crate::{Error, check_output_dir, file::read_optional};

/// Whether a written file must survive a power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// File and directory are synced to the disk.
    Durable,
    /// Nothing is synced: for directories that do not outlive the process.
    Volatile,
}

/// Replaces a file of a private directory, with mode 0600. Only one process may
/// do so at a time: what a killed one left is replaced, too.
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
            tests::done("rename");
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

/// As [`replace`], unless the file has this content already.
///
/// # Errors
/// As [`replace`], and as [`read_optional`].
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

/// Replaces a file in any directory that others may not write, with mode 0600,
/// durably: output for other programs. Several processes may do so at once.
///
/// # Errors
/// [`Error::Untrusted`]: others may write to the directory. [`Error::Io`].
pub fn replace_output(path: &Path, content: &[u8]) -> Result<(), Error> {
    let dir = parent(path);
    fs::create_dir_all(dir).map_err(Error::io("create the directory", dir))?;
    check_output_dir(dir)?;
    // tempfile creates with mode 0600, under a name that did not exist.
    let mut file = tempfile::NamedTempFile::new_in(dir).map_err(Error::io("write in", dir))?;
    file.write_all(content)
        .and_then(|()| sync(file.as_file()))
        .map_err(Error::io("write", path))?;
    #[cfg(test)]
    tests::done("rename");
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

/// Makes the names in a directory durable.
///
/// # Errors
/// [`Error::Io`].
pub fn sync_dir(dir: &Path) -> Result<(), Error> {
    match File::open(dir).and_then(|dir| sync(&dir)) {
        // A file system that cannot do it, as some in user space.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result.map_err(Error::io("sync", dir)),
    }
}

fn sync(file: &File) -> io::Result<()> {
    #[cfg(test)]
    tests::done(match file.metadata()?.is_dir() {
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
        static DONE: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
    }

    /// Notes a step of this thread.
    pub(super) fn done(step: &'static str) {
        DONE.with_borrow_mut(|done| done.push(step));
    }

    fn steps(write: impl FnOnce()) -> Vec<&'static str> {
        DONE.take();
        write();
        DONE.take()
    }

    #[test]
    fn a_file_is_on_the_disk_before_it_has_its_name_and_the_name_before_it_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings");
        let durable = ["sync file", "rename", "sync directory"];
        let done = steps(|| replace(&path, b"one", Durability::Durable).unwrap());
        assert_eq!(done, durable);
        let done = steps(|| replace_if_changed(&path, b"two", Durability::Durable).unwrap());
        assert_eq!(done, durable);
        let done = steps(|| replace_output(&path, b"three").unwrap());
        assert_eq!(done, durable);
        let done = steps(|| replace(&path, b"four", Durability::Volatile).unwrap());
        assert_eq!(done, ["rename"]);
    }

    #[test]
    fn a_file_is_replaced_and_private_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        // What a killed process left, and a link to lead the writer astray.
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
    fn output_is_not_written_where_others_could_replace_it() {
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
