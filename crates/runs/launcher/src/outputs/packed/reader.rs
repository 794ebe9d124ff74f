//! Reads the objects of a stream. A clone starts at the position where the original was cloned.

use std::{
    fs::File,
    io::{self, Read, Seek as _, SeekFrom},
    sync::Arc,
};

use sha2::{Digest as _, Sha256};

use super::{Pack, PackedManifest};
use crate::bundle::hexadecimal;

/// Reads one object of a stream after the other.
pub(crate) struct PackReader {
    pack: Arc<Pack>,
    /// The object to read, and the remaining bytes of its contents.
    part: usize,
    left: u64,
    /// The current file, the number of bytes that were read of it, and its sha256 so far.
    index: usize,
    done: u64,
    hash: Sha256,
    open: Option<File>,
    has_changed: bool,
    /// The sha256 of the previous files. `None` for changed files.
    sha256: Vec<Option<String>>,
    end: Option<io::Cursor<Vec<u8>>>,
    list: Option<PackedManifest>,
}

impl Clone for PackReader {
    fn clone(&self) -> Self {
        Self {
            pack: Arc::clone(&self.pack),
            hash: self.hash.clone(),
            sha256: self.sha256.clone(),
            // The clone opens files again.
            open: None,
            end: self.end.clone(),
            list: self.list.clone(),
            ..*self
        }
    }
}

impl PackReader {
    /// Begins with the first object.
    pub(crate) fn new(pack: Pack) -> Self {
        Self {
            left: pack.parts().first().copied().unwrap_or_default(),
            pack: Arc::new(pack),
            part: 0,
            index: 0,
            done: 0,
            hash: Sha256::new(),
            open: None,
            has_changed: false,
            sha256: Vec::new(),
            end: None,
            list: None,
        }
    }

    /// Begins with the next object.
    pub(crate) fn next_part(mut self) -> Self {
        self.part += 1;
        self.left = self
            .pack
            .parts()
            .get(self.part)
            .copied()
            .unwrap_or_default();
        self
    }

    /// The list, after the last object was read.
    pub(crate) fn into_list(self) -> Option<PackedManifest> {
        self.list
    }

    /// Reads the current file. Missing bytes are replaced by zeros.
    fn read_file(&mut self, buffer: &mut [u8]) -> usize {
        let Some(file) = self.pack.files.get(self.index) else {
            return 0;
        };
        let most = (file.size - self.done).min(self.left);
        let most = usize::try_from(most)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let buffer = &mut buffer[..most];
        if self.open.is_none() && !self.has_changed {
            let opened = self.pack.open(file).ok().and_then(|mut file| {
                let sought = file.seek(SeekFrom::Start(self.done));
                sought.ok().map(|_| file)
            });
            self.open = opened;
        }
        let read = match &mut self.open {
            Some(file) if !self.has_changed => loop {
                match file.read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read.unwrap_or(0),
                }
            },
            _ => 0,
        };
        if read == 0 && most > 0 {
            self.has_changed = true;
            buffer.fill(0);
            return most;
        }
        self.hash.update(&buffer[..read]);
        read
    }

    fn end_file(&mut self) {
        let hash = std::mem::take(&mut self.hash);
        let sha256 = (!self.has_changed).then(|| hexadecimal(&hash.finalize()));
        self.sha256.push(sha256);
        self.index += 1;
        self.done = 0;
        self.open = None;
        self.has_changed = false;
    }
}

impl Read for PackReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(end) = &mut self.end {
                return end.read(buffer);
            }
            let size = self.pack.files.get(self.index).map(|file| file.size);
            if size == Some(self.done) {
                self.end_file();
                continue;
            }
            if self.left > 0 && size.is_some() && !buffer.is_empty() {
                let count = self.read_file(buffer);
                self.done += count as u64;
                self.left -= count as u64;
                return Ok(count);
            }
            if self.part + 1 < self.pack.parts().len() || buffer.is_empty() {
                return Ok(0);
            }
            let list = self.pack.list(&self.sha256);
            self.end = Some(io::Cursor::new(self.pack.end(&list)?));
            self.list = Some(list);
        }
    }
}
