//! The folders of a run in its pods.

use std::{fs, path::PathBuf};

use longshore_diagnosis::names;

use super::BootstrapError;
use crate::pod::{self, PodConfig};

/// The folders in a pod. Tests use other folders.
#[derive(Debug, Clone)]
pub struct Places {
    /// The run's volume.
    pub home: PathBuf,
    /// The run's Secret.
    pub config: PathBuf,
    /// The bundle's Secret, or the store.
    pub bundle: PathBuf,
    /// The cache of data.
    pub data: PathBuf,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            home: names::HOME.into(),
            config: names::CONFIG.into(),
            bundle: names::BUNDLE_DIR.into(),
            data: names::DATA_CACHE.into(),
        }
    }
}

impl Places {
    /// The folder of the code.
    pub(super) fn work(&self) -> PathBuf {
        self.home.join(names::WORK_FOLDER)
    }

    /// The configuration of the run.
    pub(super) fn read_config(&self) -> Result<PodConfig, BootstrapError> {
        let path = self.config.join(pod::FILE);
        let error = |problem: String| BootstrapError::Config {
            path: path.clone(),
            problem,
        };
        let text = fs::read(&path).map_err(|source| error(source.to_string()))?;
        serde_json::from_slice(&text).map_err(|source| error(source.to_string()))
    }
}
