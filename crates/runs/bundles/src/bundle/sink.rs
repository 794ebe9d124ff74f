//! Stores an archive in memory while it is small, and in a file otherwise.

use std::io::{self, Write};

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// Archives up to this many bytes stay in memory.
pub(super) const IN_MEMORY: usize = 4 * 1024 * 1024;

/// An archive.
#[derive(Debug)]
pub(super) enum Data {
    Memory(Bytes),
    /// The archive in a temporary file, which is removed when this value is dropped.
    File(tempfile::NamedTempFile),
}

/// Hashes and stores the written data.
#[derive(Default)]
pub(super) struct Sink {
    hash: Sha256,
    memory: Vec<u8>,
    file: Option<tempfile::NamedTempFile>,
    size: u64,
}

impl Sink {
    /// Returns the archive, its size, and its sha256 in hexadecimal.
    pub(super) fn finish(self) -> io::Result<(Data, u64, String)> {
        let data = match self.file {
            Some(mut file) => {
                file.write_all(&self.memory)?;
                file.flush()?;
                Data::File(file)
            }
            None => Data::Memory(self.memory.into()),
        };
        Ok((data, self.size, hexadecimal(&self.hash.finalize())))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        self.memory.extend_from_slice(bytes);
        if self.memory.len() > IN_MEMORY {
            if self.file.is_none() {
                self.file = Some(tempfile::NamedTempFile::new()?);
            }
            if let Some(file) = &mut self.file {
                file.write_all(&self.memory)?;
            }
            self.memory.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}
