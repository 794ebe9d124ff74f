//! The paths of an instance's files. No other module joins these paths.

use std::path::{Path, PathBuf};

use crate::Error;

/// The folder of an instance and the paths of the files in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    dir: PathBuf,
}

impl Layout {
    /// Creates the layout of a folder. The folder need not exist.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The layout of the user's own instance, in `$XDG_DATA_HOME` or `~/.local/share`. `None` if
    /// the home folder is unknown.
    #[must_use]
    pub fn of_user() -> Option<Self> {
        let path = |name| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let data = path("XDG_DATA_HOME")
            .filter(|dir| dir.is_absolute())
            .or_else(|| path("HOME").map(|home| home.join(".local/share")))?;
        Some(Self::new(data.join("longshore/embedded")))
    }

    /// Returns the folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Creates the folder with mode 0700. An existing folder is checked: no other
    /// user may own it, write to it, or replace it.
    ///
    /// # Errors
    /// The folder cannot be created, or is not private.
    pub fn create(&self) -> Result<(), Error> {
        longshore_files::private_dir(&self.dir)?;
        Ok(())
    }

    /// Checks the folder if it exists.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.dir.exists() {
            true => self.create(),
            false => Ok(()),
        }
    }

    /// The lock of the process that runs the cluster.
    pub(crate) fn lock(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// The lock that each command shares while it uses a cluster on demand.
    pub(crate) fn users(&self) -> PathBuf {
        self.dir.join("users.lock")
    }

    /// Exists if a cluster on demand must keep running without users.
    pub(crate) fn keep(&self) -> PathBuf {
        self.dir.join("keep")
    }

    /// Returns true if a cluster on demand must keep running without users.
    pub(crate) fn is_kept(&self) -> bool {
        self.keep().exists()
    }

    /// The lock that commands share while they start to use the cluster. A command
    /// that stops the cluster takes it exclusively, so that no other command starts
    /// to use the cluster.
    pub(crate) fn gate(&self) -> PathBuf {
        self.dir.join("gate.lock")
    }

    /// Exists while a cluster on demand runs because it has work, without being
    /// used by a command.
    pub(crate) fn busy(&self) -> PathBuf {
        self.dir.join("busy")
    }

    /// The file with the end of the last cluster.
    pub(crate) fn end(&self) -> PathBuf {
        self.dir.join("end.json")
    }

    /// The file with the process that runs the cluster, and its endpoint.
    pub(crate) fn record(&self) -> PathBuf {
        self.dir.join("instance.json")
    }

    /// The settings that persist across restarts: port and token.
    pub(crate) fn settings(&self) -> PathBuf {
        self.dir.join("settings.json")
    }

    /// The log of the background process. The previous log file has the same path
    /// with the suffix `.1`.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.dir.join("cluster.log")
    }

    /// The default path of the kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// The certificates and keys.
    pub(crate) fn certificates(&self) -> PathBuf {
        self.dir.join("certificates")
    }

    /// The store of all objects.
    pub(crate) fn store(&self) -> PathBuf {
        self.dir.join("objects.redb")
    }

    /// The cluster's own store for run bundles that are too large for the API.
    #[must_use]
    pub fn bundles(&self) -> PathBuf {
        self.dir.join("bundles")
    }

    /// The limit of the disk space of the logs of deleted pods, in bytes.
    pub(crate) fn kept_logs_limit(&self) -> PathBuf {
        self.dir.join("kept-logs-limit")
    }

    /// The files of tasks of runs that are kept after the tasks have ended.
    #[must_use]
    pub fn outputs(&self) -> PathBuf {
        self.dir.join("outputs")
    }

    /// The data of tasks, which pods see read-only.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The keys of SSH connections to tasks.
    #[must_use]
    pub fn ssh(&self) -> PathBuf {
        self.dir.join("ssh")
    }

    /// The configuration files of SSH clients, which the user's configuration includes.
    #[must_use]
    pub fn ssh_config(&self) -> PathBuf {
        self.dir.join("ssh-config")
    }

    /// The folders of pods and their volumes.
    #[must_use]
    pub fn pods(&self, ephemeral: bool) -> PathBuf {
        self.node(ephemeral).join("pods")
    }

    /// The volumes of claims. An ephemeral cluster has a separate folder, as it does for its pods.
    pub(crate) fn volumes(&self, ephemeral: bool) -> PathBuf {
        self.dir.join(if ephemeral {
            "volumes-ephemeral"
        } else {
            "volumes"
        })
    }

    /// The logs and volumes of pods. An ephemeral cluster has a separate folder, so
    /// that removing it does not affect durable data.
    pub(crate) fn node(&self, ephemeral: bool) -> PathBuf {
        self.dir
            .join(if ephemeral { "node-ephemeral" } else { "node" })
    }
}
