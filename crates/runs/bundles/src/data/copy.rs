//! Copies a file, and calculates the sha256 of the copy.

use std::{
    fs::File,
    io::{self, Read, Write},
};

use sha2::{Digest as _, Sha256};

use super::progress::Counter;
use crate::bundle::hexadecimal;

/// Buffer size in bytes.
const PIECE: usize = 256 * 1024;

/// The reason why a file was not copied.
#[derive(Debug)]
pub(super) enum CopyError {
    Read(io::Error),
    Write(io::Error),
    Stopped,
}

/// The sha256 and the size of the data read. Reads at most one byte more than `most`, because a
/// file that grows must not fill the disk.
pub(super) fn hash(
    from: &mut impl Read,
    to: &mut impl Write,
    most: u64,
    counter: &Counter<'_>,
) -> Result<(String, u64), CopyError> {
    let mut from = from.take(most.saturating_add(1));
    let (mut hash, mut piece, mut size) = (Sha256::new(), vec![0; PIECE], 0_u64);
    loop {
        if counter.is_stopped() {
            return Err(CopyError::Stopped);
        }
        let count = match from.read(&mut piece) {
            Ok(0) => return Ok((hexadecimal(&hash.finalize()), size)),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        hash.update(&piece[..count]);
        to.write_all(&piece[..count]).map_err(CopyError::Write)?;
        size = size.saturating_add(count as u64);
        counter.add(count as u64);
    }
}

/// Copies a file to an empty one. If the file system can share the data of both, nothing is
/// written, and the copy is then read to calculate its sha256.
pub(super) fn copy(
    from: &mut File,
    to: &mut File,
    most: u64,
    counter: &Counter<'_>,
) -> Result<(String, u64), CopyError> {
    match rustix::fs::ioctl_ficlone(&*to, &*from) {
        Ok(()) => hash(to, &mut io::sink(), most, counter),
        Err(_) => hash(from, to, most, counter),
    }
}
