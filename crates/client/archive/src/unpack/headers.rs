//! Limits the memory that a reader needs for the headers of an archive's entries.

use std::{
    cell::{Cell, RefCell},
    io::{self, Read},
    path::PathBuf,
    rc::Rc,
};

use tar::{Entry, EntryType};

/// The maximum size of the headers of one entry: the sum of long names, PAX records and
/// the map of a sparse file. A reader keeps them in memory.
pub const ENTRY_HEADER_BYTES: u64 = 1 << 20;

/// The maximum length of an entry's path and of a link's target (Linux's `PATH_MAX`).
pub(super) const PATH_BYTES: usize = 4096;

/// The block size of tar archives.
const BLOCK_BYTES: u64 = 512;

/// The maximum number of bytes of a path that error messages show.
const SHOWN_BYTES: usize = 64;

/// A reader of an archive that returns at most [`ENTRY_HEADER_BYTES`] bytes for the headers
/// of an entry.
pub(super) struct Bounded<R> {
    archive: R,
    bound: Rc<Bound>,
}

/// The position in an archive, and the limit for reading headers.
#[derive(Default)]
pub(super) struct Bound {
    position: Cell<u64>,
    /// The number of header bytes that may still be read; `None` while reading content.
    left: Cell<Option<u64>>,
    is_exceeded: Cell<bool>,
    /// The position of the first header.
    start: Cell<u64>,
    /// The first two blocks of the headers, which contain the entry's name.
    first: RefCell<Vec<u8>>,
}

impl<R: Read> Bounded<R> {
    pub(super) fn new(archive: R) -> (Self, Rc<Bound>) {
        let bound = Rc::new(Bound::default());
        let shared = Rc::clone(&bound);
        let archive = Self {
            archive,
            bound: shared,
        };
        (archive, bound)
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bound = &self.bound;
        let Some(left) = bound.left.get() else {
            let count = self.archive.read(buffer)?;
            bound.advance(count);
            return Ok(count);
        };
        if left == 0 && !buffer.is_empty() {
            bound.is_exceeded.set(true);
            return Err(io::Error::other("headers of an entry are too large"));
        }
        let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let buffer = buffer.get_mut(..most).unwrap_or_default();
        let count = self.archive.read(buffer)?;
        bound.record_name(buffer.get(..count).unwrap_or_default());
        bound.left.set(Some(left.saturating_sub(count as u64)));
        bound.advance(count);
        Ok(count)
    }
}

impl Bound {
    /// Starts counting: the next bytes are padding and then the headers of an entry.
    pub(super) fn begin(&self) {
        let start = self.position.get().next_multiple_of(BLOCK_BYTES);
        let padding = start - self.position.get();
        self.start.set(start);
        self.left.set(Some(ENTRY_HEADER_BYTES + padding));
        self.first.borrow_mut().clear();
    }

    /// Stops counting: the next bytes are an entry's content.
    pub(super) fn end(&self) {
        self.left.set(None);
    }

    /// The name of the entry whose headers were too large. It may be cut off.
    pub(super) fn exceeded(&self) -> Option<PathBuf> {
        self.is_exceeded
            .get()
            .then(|| name(&self.first.borrow()).into())
    }

    fn advance(&self, count: usize) {
        let position = self.position.get().saturating_add(count as u64);
        self.position.set(position);
    }

    fn record_name(&self, piece: &[u8]) {
        let mut first = self.first.borrow_mut();
        let padding = self.start.get().saturating_sub(self.position.get());
        let skipped = usize::try_from(padding).unwrap_or(usize::MAX);
        let room = (2 * BLOCK_BYTES as usize).saturating_sub(first.len());
        first.extend(piece.iter().skip(skipped).take(room));
    }
}

/// The name of an entry, from the first blocks of its headers.
fn name(first: &[u8]) -> String {
    let (header, content) = first.split_at(first.len().min(BLOCK_BYTES as usize));
    let kind = header.get(156).copied().map(EntryType::new);
    let is_name = kind.is_some_and(|kind| kind.is_gnu_longname() || kind.is_gnu_longlink());
    let name = match is_name {
        true => content,
        false => header.get(..100).unwrap_or(header),
    };
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let shown = String::from_utf8_lossy(name.get(..SHOWN_BYTES).unwrap_or(name));
    match name.len() > SHOWN_BYTES {
        true => format!("{shown}…"),
        false => shown.into_owned(),
    }
}

/// Checks an entry's PAX records.
pub(super) fn check_records<R: Read>(entry: &mut Entry<'_, R>) -> Result<(), String> {
    // The records of a header without a file were not read and have no effect.
    if matches!(
        entry.header().entry_type(),
        EntryType::XHeader | EntryType::XGlobalHeader
    ) {
        return Ok(());
    }
    let unreadable = || "has PAX records that cannot be read".to_owned();
    let Some(records) = entry.pax_extensions().map_err(|_| unreadable())? else {
        return Ok(());
    };
    for record in records {
        let record = record.map_err(|_| unreadable())?;
        match record.key_bytes() {
            b"size" => {
                let size = record
                    .value()
                    .ok()
                    .and_then(|size| size.parse::<u64>().ok());
                size.ok_or_else(|| {
                    let found = String::from_utf8_lossy(record.value_bytes());
                    let found: String = found.chars().take(SHOWN_BYTES).collect();
                    format!("has a size that is not a number of bytes: {found:?}")
                })?;
            }
            key if key.starts_with(b"GNU.sparse.") => {
                return Err("is a sparse file in PAX format, which is not supported".to_owned());
            }
            _ => {}
        }
    }
    Ok(())
}
