//! The annotation of a pod that selects the files of its task to keep.

use longshore_diagnosis::names;
use serde::{Deserialize, Serialize};

use super::{OutputsError, check_pattern};

/// The default limit of the size of a task's outputs: 10 GiB.
pub const DEFAULT_MAX_BYTES: u64 = 10 << 30;
/// The default limit of the number of a task's outputs.
pub const DEFAULT_MAX_FILES: u64 = 10_000;
/// The maximum of `max_files`.
pub const MOST_FILES: u64 = 100_000;
/// The maximum number of patterns.
pub const MOST_PATTERNS: usize = 100;

/// The selection of a task's files to keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputRequest {
    /// Patterns of paths in the task's folder.
    pub patterns: Vec<String>,
    /// The maximum size of all files in bytes.
    pub max_bytes: u64,
    /// The maximum number of files.
    pub max_files: u64,
    /// True if a schedule creates the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scheduled: bool,
    /// The URL of the store to which the task uploads the files. `None` if the cluster keeps them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// The PersistentVolumeClaim to which the task writes the files. `None` if the cluster or a
    /// store keeps them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// The interval in seconds at which the files of the running task are collected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
}

impl OutputRequest {
    /// Reads the annotation of a pod, which any client can write.
    pub(crate) fn parse(annotation: &str) -> Result<Self, OutputsError> {
        let invalid = |problem: String| OutputsError::Annotation { problem };
        let request: Self =
            serde_json::from_str(annotation).map_err(|error| invalid(error.to_string()))?;
        // The metrics file is added to the user's patterns.
        if request.patterns.len() > MOST_PATTERNS + 1 {
            return Err(invalid(format!("use at most {MOST_PATTERNS} patterns")));
        }
        for pattern in &request.patterns {
            check_pattern(pattern).map_err(|rule| invalid(format!("{pattern:?}: {rule}")))?;
        }
        Ok(Self {
            max_files: request.max_files.min(MOST_FILES),
            ..request
        })
    }

    /// Returns true if the user requested no outputs, so that only the metrics file is kept.
    pub(crate) fn is_only_metrics(&self) -> bool {
        matches!(&self.patterns[..], [only] if only == names::METRICS_FILE)
    }

    /// The name and value of the annotation.
    pub(crate) fn annotation(&self) -> Result<(&'static str, String), serde_json::Error> {
        Ok((names::OUTPUTS, serde_json::to_string(self)?))
    }
}
