//! Appends one file to an archive, with exactly the size in its header.

use std::{
    io::{self, Read, Write},
    path::Path,
};

use tar::Header;

/// The error of [`append_file`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file's size changed while it was read.
    #[error("it changed while it was packed")]
    Changed,
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The archive cannot be written.
    #[error("the archive cannot be written: {0}")]
    Write(#[source] io::Error),
}

/// Appends a file to an archive under a path. The header with the size precedes the
/// content, so content of another size would corrupt the archive.
///
/// # Errors
/// [`FileError::Changed`] or [`FileError::Read`] if the file is at fault, and
/// [`FileError::Write`] if the archive is. The archive is incomplete and unusable then.
pub fn append_file<W: Write>(
    archive: &mut tar::Builder<W>,
    header: &mut Header,
    path: &Path,
    file: impl Read,
    size: u64,
) -> Result<(), FileError> {
    header.set_size(size);
    let mut content = Exact {
        file,
        left: size,
        problem: None,
    };
    let result = archive.append_data(header, path, &mut content);
    match content.problem {
        Some(problem) => Err(problem),
        None => result.map_err(FileError::Write),
    }
}

/// Reads a file that must have exactly the expected size. It stores read errors, so that
/// the caller can distinguish them from write errors.
struct Exact<R> {
    file: R,
    left: u64,
    problem: Option<FileError>,
}

impl<R: Read> Read for Exact<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        match self.file.read(buffer) {
            Ok(read) if read as u64 > self.left || (read == 0 && self.left > 0) => {
                self.problem = Some(FileError::Changed);
                Err(io::Error::other("the file changed"))
            }
            Ok(read) => {
                self.left -= read as u64;
                Ok(read)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                let copy = io::Error::new(error.kind(), error.to_string());
                self.problem = Some(FileError::Read(copy));
                Err(error)
            }
        }
    }
}
