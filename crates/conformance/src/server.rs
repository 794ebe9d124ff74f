//! An embedded cluster with a socket, in a folder of its own.

use std::path::PathBuf;

use longshore_embedded::{EmbeddedCluster, Options};
use tempfile::TempDir;

/// A fresh cluster with a TLS socket on loopback.
pub struct Server {
    cluster: EmbeddedCluster,
    folder: TempDir,
}

impl Server {
    /// Starts one.
    ///
    /// # Panics
    /// When it does not start: a test cannot go on without.
    pub async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    /// Starts an API server alone: nothing acts on what is stored.
    ///
    /// # Panics
    /// As [`Server::start`].
    pub async fn bare() -> Self {
        Self::start_with(Options {
            controllers: false,
            node: false,
            ..Options::default()
        })
        .await
    }

    #[allow(clippy::expect_used, reason = "tests stop here")]
    async fn start_with(options: Options) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
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

    /// Where its kubeconfig is.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// A folder for files of the test.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Its watch history is forgotten now.
    pub async fn expire_history(&self) {
        self.cluster.expire_history().await;
    }

    /// Stops it and everything it started.
    pub async fn stop(self) {
        self.cluster.stop().await;
    }
}
