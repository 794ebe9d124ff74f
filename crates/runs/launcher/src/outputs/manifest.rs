//! The list of a task's outputs.

use std::{collections::BTreeSet, fmt};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{MOST_FILES, path::is_plain};

/// The version of the format.
pub(super) const VERSION: u32 = 1;
/// The maximum number of files to list that were left out.
const MOST_LEFT_OUT: usize = 1_000;

/// The outputs of the last attempt of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The version of the format.
    pub version: u32,
    /// The run.
    pub run: String,
    /// The task's role.
    pub role: String,
    /// The task's index within the role.
    pub index: u32,
    /// The pod of the attempt.
    pub pod: String,
    /// The UID of the pod.
    pub pod_uid: String,
    /// The time when the files were collected.
    pub collected: Timestamp,
    /// True if the attempt had ended. Otherwise, the files may be incomplete.
    pub ended: bool,
    /// The files, sorted by path.
    pub files: Vec<OutputFile>,
    /// Matching files that were left out.
    pub left_out: Vec<LeftOut>,
    /// The reason why not all matching files were considered, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The number of further files that were left out.
    #[serde(default)]
    pub left_out_more: u64,
}

/// A file of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputFile {
    /// The path in the task's folder.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
    /// The sha256 of the content, in hexadecimal.
    pub sha256: String,
    /// True if the owner can execute the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// A matching file that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// The path in the task's folder, with escaped control characters.
    pub path: String,
    /// The reason for leaving it out.
    pub reason: Reason,
}

/// The reason why a matching file was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Reason {
    /// The file would exceed the size limit.
    SizeLimit,
    /// The file would exceed the limit of the number of files.
    FileLimit,
    /// The disk is nearly full.
    DiskSpace,
    /// The file is a symbolic link to a folder, to a missing file, or out of the task's folder.
    Link,
    /// The entry is not a regular file.
    NotAFile,
    /// The name is not UTF-8, has control characters, or is too long.
    Name,
    /// The file cannot be read.
    Unreadable,
    /// The folder has too many files, or too many levels, so that not all were considered.
    TooMany,
    /// The store does not accept more at once.
    StoreLimit,
    /// The file was changed while it was read.
    Changed,
    /// A reason of a newer version.
    #[serde(other)]
    Other,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SizeLimit => "exceeds the size limit of the outputs (output_size_limit)",
            Self::FileLimit => "exceeds the number of outputs (output_file_limit)",
            Self::DiskSpace => {
                "does not fit on the disk: outputs use at most half of the free space"
            }
            Self::Link => "is a symbolic link, but not to a file in the task's folder",
            Self::NotAFile => "is not a regular file",
            Self::Name => "has a name that is not UTF-8, has control characters, or is too long",
            Self::Unreadable => "cannot be read",
            Self::TooMany => "has too many files or levels of folders",
            Self::StoreLimit => "does not fit: the store takes no more of a task at once",
            Self::Changed => "was changed while it was read",
            Self::Other => "was left out",
        })
    }
}

impl Manifest {
    /// Records a matching file that is left out.
    pub(super) fn leave_out(&mut self, path: String, reason: Reason) {
        if self.left_out.len() < MOST_LEFT_OUT {
            self.left_out.push(LeftOut { path, reason });
        } else {
            self.left_out_more = self.left_out_more.saturating_add(1);
        }
    }

    /// Records entries of a folder that cannot be kept, and the number of further such entries.
    pub(super) fn leave_out_all(&mut self, all: &[LeftOut], more: u64) {
        for left_out in all {
            self.leave_out(left_out.path.clone(), left_out.reason);
        }
        self.left_out_more = self.left_out_more.saturating_add(more);
    }

    /// The total size of the files in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files
            .iter()
            .fold(0, |sum, file| sum.saturating_add(file.size))
    }

    /// The number of matching files that were left out.
    #[must_use]
    pub fn left_out_count(&self) -> u64 {
        self.left_out_more
            .saturating_add(self.left_out.len() as u64)
    }

    /// The task: `worker/1`.
    #[must_use]
    pub fn task(&self) -> String {
        format!("{}/{}", self.role, self.index)
    }

    /// Checks that the paths can be written below a folder, and that no path contains another.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.version != VERSION {
            return Err(format!("its version is {}, not {VERSION}", self.version));
        }
        if self.files.len() as u64 > MOST_FILES {
            return Err(format!("it has more than {MOST_FILES} files"));
        }
        let mut paths = BTreeSet::new();
        for file in &self.files {
            if !is_plain(&file.path) {
                return Err(format!(
                    "{:?} is not a path in the task's folder",
                    file.path
                ));
            }
            if !is_sha256(&file.sha256) {
                return Err(format!("{:?} has no sha256", file.path));
            }
            if !paths.insert(file.path.as_str()) {
                return Err(format!("it has {:?} twice", file.path));
            }
        }
        for path in &paths {
            let mut above = *path;
            while let Some((folder, _)) = above.rsplit_once('/') {
                if paths.contains(folder) {
                    return Err(format!("{folder:?} is a file and a folder"));
                }
                above = folder;
            }
        }
        Ok(())
    }
}

/// Returns true if a text is a sha256 in lower-case hexadecimal.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
}
