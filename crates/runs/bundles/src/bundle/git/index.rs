//! The files that git tracks. Git's documentation of the format is `gitformat-index`.

use std::{fs, path::Path};

use super::bitmap::positions;
use crate::bundle::hexadecimal;

/// The length of an entry before its object name.
const STAT_BYTES: usize = 40;
/// Flags of an entry.
const IS_EXTENDED: u16 = 0x4000;
/// Modes: a folder that is not checked out, with all its files; a submodule.
const FOLDER: u32 = 0o040_000;
const SUBMODULE: u32 = 0o160_000;

/// The files below a folder of the repository that git tracks.
#[derive(Debug, Default)]
pub(super) struct Tracked {
    /// Paths in the repository, sorted. In lower case if git ignores the case.
    files: Vec<Vec<u8>>,
    /// The submodules among the files.
    submodules: Vec<Vec<u8>>,
    folds_case: bool,
}

impl Tracked {
    /// Reads the index of a repository. `below`: the path of the folder in the repository, empty or
    /// with a slash at its end. `is_sha256`: true if object names have 32 bytes.
    pub(super) fn read(
        git_dir: &Path,
        below: &[u8],
        folds_case: bool,
        is_sha256: bool,
    ) -> Result<Self, String> {
        let mut tracked = Self {
            folds_case,
            ..Self::default()
        };
        let path = git_dir.join("index");
        // The first `git add` creates the index.
        if path.symlink_metadata().is_err() {
            return Ok(tracked);
        }
        let hash_bytes = if is_sha256 { 32 } else { 20 };
        let below = tracked.folded(below);
        for entry in entries(git_dir, "index", hash_bytes)? {
            let path = tracked.folded(&entry.path);
            if !path.starts_with(&below) || entry.mode == FOLDER {
                continue;
            }
            if entry.mode == SUBMODULE {
                tracked.submodules.push(path.clone());
            }
            tracked.files.push(path);
        }
        tracked.files.sort_unstable();
        tracked.submodules.sort_unstable();
        Ok(tracked)
    }

    pub(super) fn has(&self, path: &[u8]) -> bool {
        self.files.binary_search(&self.folded(path)).is_ok()
    }

    pub(super) fn has_submodule(&self, path: &[u8]) -> bool {
        self.submodules.binary_search(&self.folded(path)).is_ok()
    }

    /// Returns true if git tracks files below a folder.
    pub(super) fn has_below(&self, folder: &[u8]) -> bool {
        let mut start = self.folded(folder);
        if !start.is_empty() {
            start.push(b'/');
        }
        let first = self.files.partition_point(|path| *path < start);
        let first = self.files.get(first);
        first.is_some_and(|path| path.starts_with(&start))
    }

    fn folded(&self, path: &[u8]) -> Vec<u8> {
        match self.folds_case {
            true => path.to_ascii_lowercase(),
            false => path.to_vec(),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    mode: u32,
    path: Vec<u8>,
}

/// The content of one index file.
struct Index {
    entries: Vec<Entry>,
    /// The extension of a split index: the name of the shared index and two bitmaps.
    link: Option<Vec<u8>>,
}

/// The entries of an index file and of the index file that it shares.
fn entries(git_dir: &Path, name: &str, hash_bytes: usize) -> Result<Vec<Entry>, String> {
    let index = read(git_dir, name, hash_bytes)?;
    let Some(link) = &index.link else {
        return Ok(index.entries);
    };
    let (shared, bitmaps) = link
        .split_at_checked(hash_bytes)
        .ok_or_else(|| damaged(git_dir, name))?;
    if shared.iter().all(|byte| *byte == 0) {
        return Ok(index.entries);
    }
    let shared = format!("sharedindex.{}", hexadecimal(shared));
    let shared = read(git_dir, &shared, hash_bytes)?.entries;
    if bitmaps.is_empty() {
        return Ok(shared);
    }
    merged(shared, index.entries, bitmaps).ok_or_else(|| damaged(git_dir, name))
}

/// The entries of a split index. `own` contains the entries that replace shared ones, without their
/// paths, and then the new entries.
fn merged(mut shared: Vec<Entry>, mut own: Vec<Entry>, bitmaps: &[u8]) -> Option<Vec<Entry>> {
    let (deleted, bitmaps) = positions(bitmaps, shared.len())?;
    let (replaced, _) = positions(bitmaps, shared.len())?;
    if replaced.len() > own.len() {
        return None;
    }
    let new = own.split_off(replaced.len());
    for (position, entry) in replaced.iter().zip(own) {
        shared.get_mut(*position)?.mode = entry.mode;
    }
    for position in deleted {
        shared.get_mut(position)?.path.clear();
    }
    shared.retain(|entry| !entry.path.is_empty());
    shared.extend(new);
    Some(shared)
}

fn read(git_dir: &Path, name: &str, hash_bytes: usize) -> Result<Index, String> {
    let path = git_dir.join(name);
    // Another entry of this name could block the reader.
    if !path.is_file() {
        return Err(format!("{} is not a file", path.display()));
    }
    let data =
        fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    decode(&data, hash_bytes).ok_or_else(|| damaged(git_dir, name))
}

fn damaged(git_dir: &Path, name: &str) -> String {
    let path = git_dir.join(name);
    format!("{} is damaged, or has an unknown format", path.display())
}

/// `None` if the data is not a valid index.
fn decode(data: &[u8], hash_bytes: usize) -> Option<Index> {
    let (data, _checksum) = data.split_at_checked(data.len().checked_sub(hash_bytes)?)?;
    let data = data.strip_prefix(b"DIRC")?;
    let (version, data) = number(data)?;
    let (count, mut data) = number(data)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut entries: Vec<Entry> = Vec::new();
    for _ in 0..count {
        let previous = entries.last().map_or(&[][..], |entry| &entry.path);
        let (entry, rest) = decode_entry(data, version, hash_bytes, previous)?;
        entries.push(entry);
        data = rest;
    }
    let mut link = None;
    while let Some((signature, rest)) = data.split_first_chunk::<4>() {
        let (size, rest) = number(rest)?;
        let (content, rest) = rest.split_at_checked(usize::try_from(size).ok()?)?;
        match signature {
            b"link" => link = Some(content.to_vec()),
            // Entries of folders that are not checked out.
            b"sdir" => {}
            // An extension whose name does not begin with a capital letter is required to
            // understand the index.
            [first, ..] if !first.is_ascii_uppercase() => return None,
            _ => {}
        }
        data = rest;
    }
    Some(Index { entries, link })
}

fn decode_entry<'a>(
    data: &'a [u8],
    version: u32,
    hash_bytes: usize,
    previous: &[u8],
) -> Option<(Entry, &'a [u8])> {
    let (mode, _) = number(data.get(24..)?)?;
    let mut start = STAT_BYTES + hash_bytes;
    let flags = data.get(start..start + 2)?;
    let is_extended = u16::from_be_bytes([flags[0], flags[1]]) & IS_EXTENDED != 0;
    start += if is_extended { 4 } else { 2 };
    let mut rest = data.get(start..)?;
    let mut path = Vec::new();
    if version == 4 {
        let removed;
        (removed, rest) = variable_number(rest)?;
        path.extend(previous.get(..previous.len().checked_sub(removed)?)?);
    }
    let length = rest.iter().position(|byte| *byte == 0)?;
    path.extend(&rest[..length]);
    let rest = match version {
        4 => &rest[length + 1..],
        // Entries are padded with 1 to 8 NULs to a multiple of 8 bytes.
        _ => data.get((start + length + 8) / 8 * 8..)?,
    };
    Some((Entry { mode, path }, rest))
}

fn number(data: &[u8]) -> Option<(u32, &[u8])> {
    let (bytes, rest) = data.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*bytes), rest))
}

/// A number of 7 bits per byte, the most significant first.
fn variable_number(data: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_usize;
    for (position, byte) in data.iter().enumerate() {
        value = value
            .checked_mul(128)?
            .checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some((value, &data[position + 1..]));
        }
        // Each longer form begins after the values of the shorter ones.
        value = value.checked_add(1)?;
    }
    None
}
