//! Files that are either there as a whole or not at all, for their owner only.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use crate::Error;

/// Writes a file with mode 0600 beside its place and moves it there.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> Result<(), Error> {
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
        _ => PathBuf::from("."),
    };
    std::fs::create_dir_all(&dir).map_err(Error::file("create the folder", &dir))?;
    // tempfile creates with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(&dir).map_err(Error::file("write in", &dir))?;
    file.write_all(content)
        .map_err(Error::file("write", path))?;
    file.persist(path)
        .map_err(|error| Error::file("write", path)(error.error))?;
    Ok(())
}

/// Reads a file; `None` when there is none.
pub(crate) fn read_optional(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("read", path)(error)),
    }
}

/// Removes a file; gone already is no error.
pub(crate) fn remove_optional(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_written_file_is_private_and_replaces_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/secret");
        write_private(&path, b"one").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        write_private(&path, b"two").unwrap();
        assert_eq!(read_optional(&path).unwrap().unwrap(), b"two");
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1
        );
    }

    #[test]
    fn absent_files_are_no_errors() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read_optional(&dir.path().join("x")).unwrap().is_none());
        remove_optional(&dir.path().join("x")).unwrap();
    }
}
