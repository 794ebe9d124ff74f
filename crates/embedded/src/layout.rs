//! Where the files of an instance are. One place, so that no other module
//! joins paths of its own.

use std::path::{Path, PathBuf};

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

    /// Creates the folder with mode 0700, or checks the one that is there:
    /// no other user may own it, write to it, or replace it.
    ///
    /// # Errors
    /// The folder cannot be made, or is not private.
    pub fn create(&self) -> Result<(), Error> {
        longshore_files::private_dir(&self.dir)?;
        Ok(())
    }

    /// Checks the folder, if it is there.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.dir.exists() {
            true => self.create(),
            false => Ok(()),
        }
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

    /// Whether a cluster on demand shall outlive its users.
    pub(crate) fn is_kept(&self) -> bool {
        self.keep().exists()
    }

    /// Locked, shared, by commands while they begin to use the cluster; alone by
    /// one that stops it, so that no other begins meanwhile.
    pub(crate) fn gate(&self) -> PathBuf {
        self.dir.join("gate.lock")
    }

    /// Present while a cluster on demand that no command uses stays for work.
    pub(crate) fn busy(&self) -> PathBuf {
        self.dir.join("busy")
    }

    /// How the last cluster ended.
    pub(crate) fn end(&self) -> PathBuf {
        self.dir.join("end.json")
    }

    /// Who runs the cluster, and where it serves.
    pub(crate) fn record(&self) -> PathBuf {
        self.dir.join("instance.json")
    }

    /// What stays the same from start to start: port and token.
    pub(crate) fn settings(&self) -> PathBuf {
        self.dir.join("settings.json")
    }

    /// The log of the background process. The part before it is beside it, with
    /// the ending `.1`.
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

    /// The bundles of runs that are too large for the API: a store of the cluster's own.
    #[must_use]
    pub fn bundles(&self) -> PathBuf {
        self.dir.join("bundles")
    }

    /// The folders of pods, with their volumes.
    #[must_use]
    pub fn pods(&self, ephemeral: bool) -> PathBuf {
        self.node(ephemeral).join("pods")
    }

    /// Logs and volumes of pods. Those of an ephemeral cluster are apart, so
    /// that they can go without touching what is to stay.
    pub(crate) fn node(&self, ephemeral: bool) -> PathBuf {
        self.dir
            .join(if ephemeral { "node-ephemeral" } else { "node" })
    }
}
