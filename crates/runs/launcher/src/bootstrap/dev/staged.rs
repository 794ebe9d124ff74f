//! Reads messages of clients. The archive of an order is verified, and unpacked next to the code.

use std::{
    fmt,
    io::{self, BufRead, Read, Seek as _, Write as _},
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use longshore_archive::{Limits, Unpack, unpack};
use sha2::{Digest as _, Sha256};

use super::STAGING;
use crate::{
    bundle::{Listing, hexadecimal},
    dev::{MAX_CHANGE_BYTES, MAX_HEADER_BYTES, Order, Request},
};

/// The maximum number of files of one order.
const MAX_ENTRIES: u64 = 200_000;

/// A received order, with its files in a temporary folder. Dropping it removes the folder.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) order: Order,
    /// The unpacked files. `None` without an archive.
    pub(super) files: Option<tempfile::TempDir>,
    /// The contents of the archive.
    pub(super) listing: Listing,
}

/// A message of a client.
#[derive(Debug)]
pub(super) enum Received {
    Begin(u64),
    Describe,
    Order(Box<Staged>),
}

impl Staged {
    /// The folder of the unpacked files.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let files = self.files.as_ref()?;
        Some(files.path().join("files"))
    }
}

/// The reason why an order could not be read.
#[derive(Debug)]
pub(super) enum OrderError {
    /// The connection ended, possibly within the order.
    Ended(io::Error),
    /// The order was read to its end, but cannot be executed.
    Refused(String),
}

impl From<io::Error> for OrderError {
    fn from(error: io::Error) -> Self {
        Self::Ended(error)
    }
}

fn refused(problem: impl fmt::Display) -> OrderError {
    OrderError::Refused(problem.to_string())
}

/// Reads the next message, or `None` at the end of the connection. An order that arrives
/// incompletely, or whose archive is damaged, changes nothing.
pub(super) fn read(from: &mut impl BufRead, home: &Path) -> Result<Option<Received>, OrderError> {
    let mut header = Vec::new();
    let read = from
        .by_ref()
        .take(MAX_HEADER_BYTES)
        .read_until(b'\n', &mut header)?;
    if read == 0 {
        return Ok(None);
    }
    if header.last() != Some(&b'\n') {
        return Err(OrderError::Ended(io::ErrorKind::UnexpectedEof.into()));
    }
    let invalid = |error: serde_json::Error| io::Error::new(io::ErrorKind::InvalidData, error);
    match serde_json::from_slice(&header).map_err(invalid)? {
        Request::Begin(session) => Ok(Some(Received::Begin(session))),
        Request::Describe => Ok(Some(Received::Describe)),
        Request::Order(order) => {
            let staged = stage(order, from, home)?;
            Ok(Some(Received::Order(Box::new(staged))))
        }
    }
}

/// Reads the archive of an order.
fn stage(order: Order, from: &mut impl BufRead, home: &Path) -> Result<Staged, OrderError> {
    if order.size > MAX_CHANGE_BYTES {
        let problem = format!("the change has {} bytes, too many to receive", order.size);
        return Err(OrderError::Ended(io::Error::other(problem)));
    }
    if order.size == 0 {
        return Ok(Staged {
            order,
            files: None,
            listing: Listing::default(),
        });
    }
    // Errors of the disk are reported after the archive was read.
    let mut target = create(home);
    let mut left = order.size;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    while left > 0 {
        let room = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let count = match from.read(&mut buffer[..room]) {
            Ok(0) => return Err(OrderError::Ended(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        hash.update(&buffer[..count]);
        if let Ok((_, file)) = &mut target
            && let Err(error) = file.write_all(&buffer[..count])
        {
            target = Err(error);
        }
        left -= count as u64;
    }
    let (folder, mut file) =
        target.map_err(|error| refused(format!("the change cannot be stored: {error}")))?;
    let found = hexadecimal(&hash.finalize());
    if found != order.sha256 {
        return Err(refused(format!(
            "the change is damaged: its sha256 is {found}, not {}",
            order.sha256
        )));
    }
    file.rewind().map_err(refused)?;
    let files = folder.path().join("files");
    std::fs::create_dir(&files).map_err(refused)?;
    let options = Unpack {
        limits: Limits {
            bytes: MAX_CHANGE_BYTES,
            entries: MAX_ENTRIES,
        },
        ..Unpack::default()
    };
    let archive = MultiGzDecoder::new(io::BufReader::new(file));
    unpack(archive, &files, &options, |_| ()).map_err(refused)?;
    Ok(Staged {
        order,
        listing: Listing::of_folder(&files),
        files: Some(folder),
    })
}

/// A temporary folder on the disk of the code, and a file for the archive.
fn create(home: &Path) -> io::Result<(tempfile::TempDir, std::fs::File)> {
    let folder = tempfile::Builder::new().prefix(STAGING).tempdir_in(home)?;
    let file = tempfile::tempfile_in(folder.path())?;
    Ok((folder, file))
}
