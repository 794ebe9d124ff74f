//! Where the files of an instance are. One place, so that no other module
//! joins paths of its own.

use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use crate::Error;

/// The folder of an instance and the files in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    dir: PathBuf,
}

impl Layout {
    /// The layout of a folder, which need not exist.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The folder itself.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Creates the folder, for its owner only.
    pub(crate) fn create(&self) -> Result<(), Error> {
        create_private(&self.dir)
    }

    /// Locked by the process that runs the cluster.
    pub(crate) fn lock(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// Locked, shared, by commands for which a cluster on demand must live.
    pub(crate) fn users(&self) -> PathBuf {
        self.dir.join("users.lock")
    }

    /// Present when a cluster on demand shall outlive its users.
    pub(crate) fn keep(&self) -> PathBuf {
        self.dir.join("keep")
    }

    /// Who runs the cluster, and where it serves.
    pub(crate) fn record(&self) -> PathBuf {
        self.dir.join("instance.json")
    }

    /// What stays the same from start to start: port and token.
    pub(crate) fn settings(&self) -> PathBuf {
        self.dir.join("settings.json")
    }

    /// The log of the background process.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.dir.join("cluster.log")
    }

    /// The kubeconfig, unless another place is asked for.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// Certificates and keys.
    pub(crate) fn certificates(&self) -> PathBuf {
        self.dir.join("certificates")
    }

    /// All objects.
    pub(crate) fn store(&self) -> PathBuf {
        self.dir.join("objects.redb")
    }

    /// Logs and volumes of pods. Those of an ephemeral cluster are apart, so
    /// that they can go without touching what is to stay.
    pub(crate) fn node(&self, ephemeral: bool) -> PathBuf {
        self.dir
            .join(if ephemeral { "node-ephemeral" } else { "node" })
    }
}

/// Creates a folder and its parents, for their owner only. A folder that was
/// there keeps its mode: it may be anybody's; each file has a mode of its own.
pub(crate) fn create_private(dir: &Path) -> Result<(), Error> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(Error::file("create the folder", dir))
}
