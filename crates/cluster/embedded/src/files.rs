//! Reads and writes the files of an instance. Returns this crate's errors.

use std::path::Path;

use longshore_files::OpenMode;

use crate::Error;

/// Opens a private file of the instance for reading and writing.
pub(crate) fn open(path: &Path) -> Result<std::fs::File, Error> {
    Ok(longshore_files::open(path, OpenMode::ReadWrite)?)
}

/// Opens a private file that is only locked. Also works on a file system that became read-only.
pub(crate) fn open_lock(path: &Path) -> Result<std::fs::File, Error> {
    match open(path) {
        Err(error) if error.is_storage() => {
            let opened = longshore_files::open(path, OpenMode::Inspect);
            opened.map_err(|_| error)
        }
        opened => opened,
    }
}

/// Replaces a private file.
pub(crate) fn write_private(
    path: &Path,
    content: &[u8],
    durability: Durability,
) -> Result<(), Error> {
    Ok(longshore_files::replace(path, content, durability)?)
}

/// Reads a private file; `None` if it does not exist.
pub(crate) fn read_optional(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    Ok(longshore_files::read_optional(path)?)
}

/// Removes a file. It is not an error if the file does not exist.
pub(crate) fn remove_optional(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}

pub(crate) use longshore_files::Durability;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn missing_files_are_not_errors() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read_optional(&dir.path().join("x")).unwrap().is_none());
        remove_optional(&dir.path().join("x")).unwrap();
    }
}
