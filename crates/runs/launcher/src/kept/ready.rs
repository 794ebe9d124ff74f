//! Ready copies: the code of the most recently used bundles, unpacked before a pod needs it.
//! A pod receives the copy through one rename. The next copy is created when no pod is
//! starting.
//!
//! A copy is created under a temporary name and renamed when it is complete. The note about the
//! copy is written to a pod's volume after the copy itself, and the bootstrap removes the note
//! before it uses the copy. Therefore, a partial copy of a killed process never counts as complete.
//! Copies from before a power failure have another boot ID.

use std::{
    fs,
    io::{self, Seek as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use longshore_archive::{Limits, Unpack, UnpackError, unpack};
use longshore_diagnosis::names;
use longshore_files::remove_tree;

use super::Kept;
use crate::{
    bootstrap::copy_bundle,
    ready_note::{boot_id, note},
};

/// The smallest bundle with a copy, in bytes. Unpacking smaller bundles takes about as long as
/// using a copy.
pub(super) const SMALLEST: u64 = 8 << 20;
/// The number of most recently used bundles with copies.
pub(super) const BUNDLES: usize = 2;
/// The name prefix of incomplete copies.
const UNFINISHED: &str = ".tmp";

/// The unpacked code of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadyCopy {
    pub(super) sha256: String,
    /// The total size of its files in bytes.
    pub(super) bytes: u64,
    pub(super) path: PathBuf,
}

/// The reason for a missing copy.
#[derive(Debug)]
pub(super) enum NoCopy {
    /// The code is larger than the available space.
    NoRoom,
    /// Another reason.
    Failed(String),
}

impl Kept {
    fn all_ready(&self) -> PathBuf {
        self.root.join("ready")
    }

    /// The folder of the copies created since the machine booted.
    fn ready(&self) -> Option<PathBuf> {
        Some(self.all_ready().join(boot_id()?))
    }

    /// The existing copies.
    pub(super) fn copies(&self) -> Vec<ReadyCopy> {
        let folders = self.ready().into_iter();
        let entries = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
        let copy = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let (sha256, bytes) = name.split_once('.')?;
            Some(ReadyCopy {
                sha256: sha256.to_owned(),
                bytes: bytes.parse().ok()?,
                path: entry.path(),
            })
        };
        entries.flatten().filter_map(copy).collect()
    }

    /// Removes incomplete copies of killed processes, and copies from before the machine
    /// booted. Call it only while no copy is being created.
    pub(super) fn clean_copies(&self) -> io::Result<()> {
        let now = self.ready();
        for folder in entries(&self.all_ready())? {
            if Some(&folder) != now.as_ref() {
                remove_tree(&folder)?;
                continue;
            }
            let is_unfinished = |path: &PathBuf| {
                let name = path.file_name().unwrap_or_default();
                name.to_string_lossy().starts_with(UNFINISHED)
            };
            for path in entries(&folder)?.into_iter().filter(is_unfinished) {
                remove_tree(&path)?;
            }
        }
        Ok(())
    }

    /// Removes a copy. Renames it first, so that no partially removed copy is used.
    pub(super) fn remove_copy(&self, copy: &ReadyCopy) -> io::Result<()> {
        let aside = copy
            .path
            .with_file_name(format!("{UNFINISHED}{}", copy.sha256));
        match fs::rename(&copy.path, &aside) {
            // A pod took it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            renamed => renamed.and_then(|()| remove_tree(&aside)),
        }
    }

    /// Removes the copies of a bundle.
    pub(super) fn remove_copies(&self, sha256: &str) -> io::Result<()> {
        let copies = self.copies();
        let mut copies = copies.iter().filter(|copy| copy.sha256 == sha256);
        copies.try_for_each(|copy| self.remove_copy(copy))
    }

    /// Unpacks a bundle like the bootstrap does, into at most `room` bytes.
    pub(super) fn make_copy(&self, sha256: &str, room: u64) -> Result<u64, NoCopy> {
        let failed = |error: &dyn std::fmt::Display| NoCopy::Failed(error.to_string());
        let folder = self
            .ready()
            .ok_or_else(|| failed(&"the machine has no boot id"))?;
        let mut builder = fs::DirBuilder::new();
        // Pods of other users do not receive copies and do not have to see them.
        let made = builder.recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| failed(&error))?;
        let temporary = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempdir_in(&folder);
        let temporary = temporary.map_err(|error| failed(&error))?;
        let mut file = tempfile::tempfile_in(temporary.path()).map_err(|error| failed(&error))?;
        let path = self.path(sha256);
        let found = copy_bundle(&path, &mut file).map_err(|error| failed(&error))?;
        if found != sha256 {
            return Err(failed(&format!("the bundle {} is damaged", path.display())));
        }
        file.rewind().map_err(|error| failed(&error))?;
        let work = temporary.path().join("work");
        fs::create_dir(&work).map_err(|error| failed(&error))?;
        let options = Unpack {
            limits: Limits {
                bytes: room.min(Limits::default().bytes),
                ..Limits::default()
            },
            ..Unpack::default()
        };
        let reader = io::BufReader::with_capacity(1 << 16, file);
        let moved = match unpack(MultiGzDecoder::new(reader), &work, &options, |_| ()) {
            Err(UnpackError::TooLarge { .. }) => return Err(NoCopy::NoRoom),
            unpacked => unpacked.map_err(|error| failed(&error))?,
        };
        let name = format!("{sha256}.{}", moved.bytes);
        fs::rename(work, folder.join(name)).map_err(|error| failed(&error))?;
        Ok(moved.bytes)
    }

    /// Moves a copy of the bundle into the new, empty volume of a pod. Returns true if there was
    /// one. The pod's containers must run as the user of this process.
    pub fn give(&self, sha256: &str, volume: &Path) -> bool {
        let (Some(note), true) = (note(sha256), super::files::is_sha256(sha256)) else {
            return false;
        };
        let mut copies = self.copies().into_iter();
        let Some(copy) = copies.find(|copy| copy.sha256 == sha256) else {
            return false;
        };
        // If another pod takes the copy first, the volume is on another disk, or the note is
        // missing, the bootstrap unpacks the bundle.
        let given = fs::rename(copy.path, volume.join(names::WORK_FOLDER))
            .and_then(|()| fs::write(volume.join(names::READY), note));
        given.is_ok()
    }
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}
