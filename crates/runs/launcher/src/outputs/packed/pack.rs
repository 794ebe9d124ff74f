//! The files of a task's folder in a stream, and their positions.

use std::{io, os::unix::fs::PermissionsExt as _, path::Path};

use jiff::Timestamp;
use longshore_diagnosis::names;

use super::{PackedManifest, TRAILER, Trailer};
use crate::outputs::{
    Manifest, OutputFile, OutputRequest, OutputsError, Reason,
    manifest::VERSION,
    patterns::Patterns,
    walk::{Found, Tree},
};

/// Space in the list for changes of its text while the files are read.
const SLACK: usize = 256;

/// The identity of the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackSource<'a> {
    pub(crate) run: &'a str,
    pub(crate) role: &'a str,
    pub(crate) index: u32,
    pub(crate) pod: &'a str,
    pub(crate) request: &'a OutputRequest,
}

/// The files of a stream.
#[derive(Debug)]
pub(crate) struct Pack {
    tree: Tree,
    pub(super) files: Vec<Planned>,
    /// The list, with a placeholder for each sha256.
    list: PackedManifest,
    /// The size of the list in the stream.
    reserved: usize,
}

/// A file of a stream.
#[derive(Debug)]
pub(super) struct Planned {
    found: Found,
    pub(super) size: u64,
}

impl Pack {
    /// Finds the matching files of a task's folder, in the run's volume. `None` if the folder does
    /// not exist. The contents are divided into at most `parts` parts.
    ///
    /// # Errors
    /// The folder cannot be read, or a pattern is invalid.
    pub(crate) fn read(
        volume: &Path,
        source: &PackSource<'_>,
        ended: bool,
        (part_limit, parts): (u64, u64),
        now: Timestamp,
    ) -> Result<Option<Self>, OutputsError> {
        let request = source.request;
        let patterns = Patterns::new(&request.patterns);
        let patterns = patterns.map_err(|error| OutputsError::Annotation {
            problem: error.to_string(),
        })?;
        let tree = Tree::read(volume, names::WORK_FOLDER, &patterns);
        let Some(tree) = tree.map_err(OutputsError::system("read", volume))? else {
            return Ok(None);
        };
        let mut manifest = Manifest {
            version: VERSION,
            run: source.run.to_owned(),
            role: source.role.to_owned(),
            index: source.index,
            pod: source.pod.to_owned(),
            pod_uid: String::new(),
            collected: now,
            ended,
            files: Vec::new(),
            left_out: Vec::new(),
            problem: None,
            left_out_more: 0,
        };
        let capacity = part_limit.saturating_mul(parts);
        let limit = request.max_bytes.min(capacity);
        let too_large = match limit < request.max_bytes {
            true => Reason::StoreLimit,
            false => Reason::SizeLimit,
        };
        let (mut files, mut offsets, mut total) = (Vec::new(), Vec::new(), 0_u64);
        for found in &tree.found {
            if manifest.files.len() as u64 >= request.max_files {
                manifest.leave_out(found.path.clone(), Reason::FileLimit);
                continue;
            }
            let metadata = tree.open(found).and_then(|file| {
                let metadata = file.metadata();
                metadata.map_err(|_| Reason::Unreadable)
            });
            let metadata = match metadata {
                Ok(metadata) if metadata.len() > limit - total => Err(too_large),
                other => other,
            };
            match metadata {
                Ok(metadata) => {
                    manifest.files.push(OutputFile {
                        path: found.path.clone(),
                        size: metadata.len(),
                        sha256: "0".repeat(64),
                        executable: metadata.permissions().mode() & 0o100 != 0,
                    });
                    offsets.push(total);
                    total += metadata.len();
                    files.push(Planned {
                        found: found.clone(),
                        size: metadata.len(),
                    });
                }
                Err(reason) => manifest.leave_out(found.path.clone(), reason),
            }
        }
        manifest.leave_out_all(&tree.left_out, tree.left_out_more);
        let list = PackedManifest {
            manifest,
            offsets,
            parts: cut(total, part_limit),
        };
        Ok(Some(Self {
            reserved: json(&list).len() + SLACK,
            tree,
            files,
            list,
        }))
    }

    /// The sizes of the objects, the last of which contains the list.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        let mut sizes = self.list.parts.clone();
        if let Some(last) = sizes.last_mut() {
            *last += self.reserved as u64 + TRAILER;
        }
        sizes
    }

    /// The size of the contents in each object.
    pub(super) fn parts(&self) -> &[u64] {
        &self.list.parts
    }

    pub(super) fn open(&self, file: &Planned) -> Result<std::fs::File, Reason> {
        self.tree.open(&file.found)
    }

    /// The list with the sha256 of each file, `None` for a file that has changed.
    pub(super) fn list(&self, sha256: &[Option<String>]) -> PackedManifest {
        let mut list = self.list.clone();
        let files = std::mem::take(&mut list.manifest.files);
        let offsets = std::mem::take(&mut list.offsets);
        for ((mut file, offset), sha256) in files.into_iter().zip(offsets).zip(sha256) {
            match sha256 {
                Some(sha256) => {
                    file.sha256.clone_from(sha256);
                    list.manifest.files.push(file);
                    list.offsets.push(offset);
                }
                None => list.manifest.leave_out(file.path, Reason::Changed),
            }
        }
        list
    }

    /// The end of the stream: the list and the trailer.
    pub(super) fn end(&self, list: &PackedManifest) -> io::Result<Vec<u8>> {
        let mut text = json(list);
        if text.len() > self.reserved {
            return Err(io::Error::other("the list of the files has grown"));
        }
        text.resize(self.reserved, b' ');
        let trailer = Trailer::of(&text).to_bytes();
        text.extend(trailer);
        Ok(text)
    }
}

/// The list as JSON. Serialization of texts and numbers cannot fail.
fn json(list: &PackedManifest) -> Vec<u8> {
    serde_json::to_vec(list).unwrap_or_default()
}

/// Divides contents into parts. Returns at least one part, which may be empty.
fn cut(total: u64, limit: u64) -> Vec<u64> {
    let mut parts = Vec::new();
    let mut left = total;
    loop {
        let part = left.min(limit);
        parts.push(part);
        left -= part;
        if left == 0 {
            return parts;
        }
    }
}
