//! The list of the files of data. Its sha256 is the identity of the data. Pure.

use std::{collections::BTreeSet, path::Path};

use longshore_archive::is_confined;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::check::{is_content, is_plain};
use crate::bundle::hexadecimal;

/// The version of the format.
const VERSION: u32 = 1;
/// The maximum number of files.
pub(super) const MOST_FILES: usize = 1_000_000;

/// The files of data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format.
    pub version: u32,
    /// The files, sorted by path.
    pub files: Vec<DataFile>,
    /// The folders without entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// The symbolic links within the folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<DataLink>,
}

/// A file of data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// The path in the folder.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
    /// The identity of the content: its sha256 in hexadecimal, or `object-` and the sha256 of
    /// the bucket, key, ETag and size of an object.
    pub content: String,
    /// True if the file is executable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// A symbolic link of data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataLink {
    /// The path in the folder.
    pub path: String,
    /// The target, relative, which is in the folder.
    pub target: String,
}

impl Manifest {
    /// The manifest of these files.
    pub(super) fn new(
        mut files: Vec<DataFile>,
        mut folders: Vec<String>,
        mut links: Vec<DataLink>,
    ) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        links.sort_by(|a, b| a.path.cmp(&b.path));
        folders.sort();
        Self {
            version: VERSION,
            files,
            folders,
            links,
        }
    }

    /// The text of the manifest, as JSON.
    #[must_use]
    pub fn to_text(&self) -> String {
        // Serialization of strings and numbers cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The sha256 of a text.
    #[must_use]
    pub fn sha256(text: &str) -> String {
        hexadecimal(&Sha256::digest(text.as_bytes()))
    }

    /// Reads an untrusted text, and checks that its files can be written below a folder and cannot
    /// leave it.
    ///
    /// # Errors
    /// The problem.
    pub fn parse(text: &str) -> Result<Self, String> {
        let manifest: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        if self.version != VERSION {
            return Err(format!("its version is {}, not {VERSION}", self.version));
        }
        let entries = self.files.len() + self.folders.len() + self.links.len();
        if entries > MOST_FILES {
            return Err(format!("it has more than {MOST_FILES} entries"));
        }
        let files = self.files.iter().map(|file| &file.path);
        let links = self.links.iter().map(|link| &link.path);
        let mut paths = BTreeSet::new();
        for path in files.chain(links).chain(&self.folders) {
            if !is_plain(path) {
                return Err(format!("{path:?} is not a path in the folder"));
            }
            if !paths.insert(path.as_str()) {
                return Err(format!("it has {path:?} twice"));
            }
        }
        // Checks that no entry is below a file or a link, so that no link is followed.
        for path in &paths {
            let mut above = *path;
            while let Some((folder, _)) = above.rsplit_once('/') {
                if paths.contains(folder) {
                    return Err(format!("{folder:?} is a folder and not a folder"));
                }
                above = folder;
            }
        }
        let unknown = self.files.iter().find(|file| !is_content(&file.content));
        if let Some(file) = unknown {
            return Err(format!("{:?} has no sha256", file.path));
        }
        let leaves = |link: &&DataLink| {
            let (path, target) = (Path::new(&link.path), Path::new(&link.target));
            !is_confined(path, target) || link.target.contains('\0')
        };
        match self.links.iter().find(leaves) {
            Some(link) => Err(format!("the link {:?} leaves the folder", link.path)),
            None => Ok(()),
        }
    }

    /// The total size of the files in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files
            .iter()
            .fold(0, |sum, file| sum.saturating_add(file.size))
    }
}
