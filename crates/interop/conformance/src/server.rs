//! An embedded cluster that listens on a socket and has its own folder.

use std::path::PathBuf;

use longshore_embedded::{EmbeddedCluster, Options};
use tempfile::TempDir;

/// A new cluster with a TLS socket on the loopback interface.
pub struct Server {
    cluster: EmbeddedCluster,
    folder: TempDir,
}

impl Server {
    /// Starts a cluster with controllers and a node.
    ///
    /// # Panics
    /// If the cluster does not start.
    pub async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    /// Starts an API server without controllers and nodes.
    ///
    /// # Panics
    /// Like [`Server::start`].
    pub async fn bare() -> Self {
        Self::start_with(Options {
            controllers: false,
            nodes: 0,
            ..Options::default()
        })
        .await
    }

    /// Starts a cluster with controllers and without nodes.
    ///
    /// # Panics
    /// Like [`Server::start`].
    pub async fn without_node() -> Self {
        Self::start_with(Options {
            nodes: 0,
            ..Options::default()
        })
        .await
    }

    #[allow(clippy::expect_used, reason = "tests stop here")]
    async fn start_with(options: Options) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be created");
        let options = Options {
            listen: Some(([127, 0, 0, 1], 0).into()),
            kubeconfig: Some(folder.path().join("kubeconfig")),
            ..options
        };
        let cluster = EmbeddedCluster::start(options)
            .await
            .expect("the cluster starts");
        Self { cluster, folder }
    }

    /// The path of its kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// A folder for the test's files.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Compacts the watch history.
    pub async fn expire_history(&self) {
        self.cluster.expire_history().await;
    }

    /// Stops the cluster and everything it started.
    pub async fn stop(self) {
        self.cluster.stop().await;
    }
}
